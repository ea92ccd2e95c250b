// Package adaptive moves a gate's limit by itself: limiters for [forebay.Config], each
// of which is a function of what it is told, the time included, and of nothing else.
//
// [Probe] is the one to take. It finds the limit at which a backend does most, whatever
// that backend is: it tries a little more and a little less while the gate is full,
// counts how many calls come to their end, and keeps what does more. It needs one number
// that only the operator can know, the deadline by which an answer is still of use. It
// compares no times with earlier ones, so neither a slow start nor a long incident
// misleads it, and reads no processor's load, so it protects what waits as well as what
// computes.
//
// [AIMD], [Vegas] and [Gradient2] are there for those who know them, after the laws as
// they were published. They compare times with earlier ones, or with a bound, and each
// does badly before some ordinary backend.
//
// See the example of [NewProbe]. A limiter belongs to one gate, which calls it under its
// lock; nothing else may.
//
// What no limiter can do: learn anything while the gate is not full. Then the limit
// stays.
package adaptive
