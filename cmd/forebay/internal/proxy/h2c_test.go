package proxy

import "net/http"

// h2c is a client that speaks HTTP/2 without encryption.
func h2c() *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}
