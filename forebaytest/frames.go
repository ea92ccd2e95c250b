package forebaytest

import (
	"encoding/binary"
	"io"
	"strconv"
	"sync"
)

// Frames is a client that writes and reads the frames of HTTP/2, without TLS: for
// streams by the thousand, resets, windows that never open. What the server asks of
// every client, it does by itself: it confirms settings and pings. One goroutine may
// write while another reads.
type Frames struct {
	*Raw

	mu sync.Mutex // guards writing
}

// Frame is one that the server sent. Of those in between, which only keep the
// connection going, none is shown.
type Frame struct {
	Type    FrameType
	Stream  uint32
	Ends    bool   // the stream's last
	Status  int    // of headers: that of the answer; 0: trailers
	Code    uint32 // of a reset and a goaway
	Payload []byte
}

// FrameType is the type of a [Frame].
type FrameType uint8

// The types of frame that a test sees.
const (
	DataFrame    FrameType = 0 // a piece of a body
	HeadersFrame FrameType = 1 // those of an answer, or its trailers
	ResetFrame   FrameType = 3 // the stream is broken off
	GoAwayFrame  FrameType = 7 // the connection ends

	settingsFrame FrameType = 4
	pingFrame     FrameType = 6
	windowFrame   FrameType = 8
)

const (
	flagEnd     = 1 // of data and headers; of settings and pings: confirmed
	flagHeaders = 4 // they are complete
	flagPadded  = 8

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// newFrames begins HTTP/2 on a new connection: no table of headers, no pushes, and a
// window for answers that is never used up.
func newFrames(r *Raw) *Frames {
	f := &Frames{Raw: r}
	r.Send(preface)
	f.write(settingsFrame, 0, 0, []byte{0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff})
	f.write(windowFrame, 0, 0, []byte{0x7f, 0, 0, 0})
	return f
}

// write sends one frame. A connection that the server has ended is for who reads to
// find out.
func (f *Frames) write(typ FrameType, flags byte, stream uint32, payload []byte) {
	head := make([]byte, 9, 9+len(payload))
	head[0], head[1], head[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	head[3], head[4] = byte(typ), flags
	binary.BigEndian.PutUint32(head[5:], stream)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.Conn.Write(append(head, payload...))
}

// Open begins a stream, an odd number above those before, with a request: method, path
// and pairs of further headers in small letters. end says that it has no body.
func (f *Frames) Open(stream uint32, end bool, method, path string, headers ...string) {
	fields := append([]string{":method", method, ":scheme", "http", ":authority", "gate.test", ":path", path}, headers...)
	var block []byte
	for i := 0; i+1 < len(fields); i += 2 {
		block = append(block, 0) // a literal with its name, to be kept in no table
		block = appendString(block, fields[i])
		block = appendString(block, fields[i+1])
	}
	flags := byte(flagHeaders)
	if end {
		flags |= flagEnd
	}
	f.write(HeadersFrame, flags, stream, block)
}

// Data sends a piece of a stream's body. Whoever sends more than the server's window
// allows, 65535 bytes at first, has broken the protocol.
func (f *Frames) Data(stream uint32, end bool, data string) {
	flags := byte(0)
	if end {
		flags = flagEnd
	}
	f.write(DataFrame, flags, stream, []byte(data))
}

// ResetStream gives a stream up, with an error code: 8 is that of a caller that left.
func (f *Frames) ResetStream(stream, code uint32) {
	f.write(ResetFrame, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

// Next returns the next frame, and false when the server has ended the connection.
func (f *Frames) Next() (Frame, bool) {
	f.t.Helper()
	for {
		frame, flags, ok := f.read()
		if !ok {
			return Frame{}, false
		}
		switch {
		case frame.Type == settingsFrame && flags&flagEnd == 0:
			f.write(settingsFrame, flagEnd, 0, nil)
		case frame.Type == pingFrame && flags&flagEnd == 0:
			f.write(pingFrame, flagEnd, 0, frame.Payload)
		case frame.Type == settingsFrame, frame.Type == pingFrame, frame.Type == windowFrame:
		default:
			f.explain(&frame, flags)
			return frame, true
		}
	}
}

func (f *Frames) read() (frame Frame, flags byte, ok bool) {
	f.t.Helper()
	var head [9]byte
	if _, err := io.ReadFull(f.from, head[:]); err != nil {
		return frame, 0, false
	}
	frame.Type, flags = FrameType(head[3]), head[4]
	frame.Stream = binary.BigEndian.Uint32(head[5:]) & 0x7fffffff
	frame.Payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(f.from, frame.Payload); err != nil {
		return frame, 0, false
	}
	return frame, flags, true
}

// explain fills in what the payload says.
func (f *Frames) explain(frame *Frame, flags byte) {
	f.t.Helper()
	switch p := frame.Payload; frame.Type {
	case DataFrame, HeadersFrame:
		frame.Ends = flags&flagEnd != 0
		if flags&flagPadded != 0 {
			f.t.Fatalf("the server pads its frames, which this client does not understand")
		}
		if frame.Type == HeadersFrame {
			frame.Status = statusIn(p)
		}
	case ResetFrame:
		frame.Code = binary.BigEndian.Uint32(p)
	case GoAwayFrame:
		frame.Code = binary.BigEndian.Uint32(p[4:])
	}
}

// statusIn returns the status in a block of headers, which stands at its beginning; 0 if
// there is none. The table of headers may have been resized just before.
func statusIn(block []byte) int {
	for len(block) > 0 && block[0]&0xe0 == 0x20 {
		block = block[1:]
	}
	if len(block) == 0 {
		return 0
	}
	known := [...]int{8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
	if i := int(block[0] & 0x7f); block[0]&0x80 != 0 {
		if i < len(known) {
			return known[i]
		}
		return 0
	}
	name := int(block[0] & 0x0f)
	if block[0]&0x40 != 0 {
		name = int(block[0] & 0x3f)
	}
	if name >= len(known) || known[name] == 0 || len(block) < 2 {
		return 0
	}
	n := int(block[1] & 0x7f)
	if len(block) < 2+n {
		return 0
	}
	if block[1]&0x80 != 0 {
		return packedDigits(block[2 : 2+n])
	}
	status, _ := strconv.Atoi(string(block[2 : 2+n]))
	return status
}

// packedDigits reads three digits in the code of HPACK: 0 to 2 have five bits, the others
// six.
func packedDigits(p []byte) (status int) {
	bits, left := uint32(0), 0
	for _, b := range p {
		bits, left = bits<<8|uint32(b), left+8
	}
	for range 3 {
		digit, size := int(bits>>max(0, left-5)&0x1f), 5
		if digit > 2 {
			digit, size = int(bits>>max(0, left-6)&0x3f)-0x19+3, 6
		}
		left -= size
		if left < 0 || digit > 9 {
			return 0
		}
		status = 10*status + digit
	}
	return status
}

// appendString appends a string of HPACK, as it is.
func appendString(block []byte, s string) []byte {
	if len(s) < 127 {
		return append(append(block, byte(len(s))), s...)
	}
	block = append(block, 127)
	n := len(s) - 127
	for ; n >= 128; n >>= 7 {
		block = append(block, byte(n)|128)
	}
	return append(append(block, byte(n)), s...)
}
