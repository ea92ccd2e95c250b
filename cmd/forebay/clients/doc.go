// Package clients tests the program with the clients that people have: curl, Node's
// fetch, Python's http.client, Go's own, gRPC, WebSocket, and a browser. It is a module
// of its own, so that nobody who builds the program gets those that are libraries.
package clients
