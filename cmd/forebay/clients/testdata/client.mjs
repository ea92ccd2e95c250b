// Sends requests by Node's fetch.
//
// Usage: client.mjs HOST:PORT REQUESTS
// REQUESTS is a list in JSON: {"method", "path", "length", "chunked", "headers"}.
// What was seen of each is printed, one line of JSON for each.
const [address, requests] = process.argv.slice(2);

function stream(left) {
  return new ReadableStream({
    pull(to) {
      const piece = Math.min(left, 1 << 16);
      if (piece === 0) return to.close();
      left -= piece;
      to.enqueue(new Uint8Array(piece).fill(120));
    },
  });
}

for (const r of JSON.parse(requests)) {
  const options = { method: r.method, headers: r.headers ?? {}, signal: AbortSignal.timeout(60000) };
  if (r.length > 0) options.body = r.chunked ? stream(r.length) : Buffer.alloc(r.length, "x");
  if (r.chunked) options.duplex = "half";
  const res = await fetch(`http://${address}${r.path}`, options);
  const text = await res.text();
  console.log(JSON.stringify({
    status: res.status, retryAfter: res.headers.get("Retry-After") ?? "", type: res.headers.get("Content-Type") ?? "", text,
  }));
}
