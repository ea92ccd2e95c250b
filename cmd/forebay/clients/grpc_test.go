//go:build unix

package clients

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The service is gRPC's own health service: it has a plain call and a stream.
const grpcGates = `
upstream: http://%s
gates:
  calls: {max_in_flight: 2, refuse: {retry_after: 1s}}
  streams: {max_in_flight: 1}
routes:
  - {match: /, gate: calls}
  - {match: /grpc.health.v1.Health/Watch, gate: streams}
`

// newGRPC runs a server of gRPC.
func newGRPC(t *testing.T) (address string, service *health.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, service := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(s, service)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Errorf("the server of gRPC: %v", err)
		}
	})
	return l.Addr().String(), service
}

func dialGRPC(t *testing.T, address string, more ...grpc.DialOption) healthpb.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, append(more, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

// TestGRPCCalls: a call passes, and its refusal is one of gRPC's, which says when to come
// back.
func TestGRPCCalls(t *testing.T) {
	upstream, _ := newGRPC(t)
	p := start(t, fmt.Sprintf(grpcGates, upstream))
	client := dialGRPC(t, p.data)
	if res, err := client.Check(within(t), &healthpb.HealthCheckRequest{}); res.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("a call: %v, %v", res, err)
	}
	_, err := client.Check(within(t), &healthpb.HealthCheckRequest{Service: "nobody's"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("the service's own error: %v", err)
	}
	p.limit("calls", `"closed"`)
	var header, trailer metadata.MD
	_, err = client.Check(within(t), &healthpb.HealthCheckRequest{}, grpc.Header(&header), grpc.Trailer(&trailer))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a refusal: %v", err)
	}
	if pushback := trailer["grpc-retry-pushback-ms"]; len(pushback) != 1 || pushback[0] != "1000" || len(header) > 0 {
		t.Errorf("pushback %v, headers before the trailers %v", pushback, header)
	}
	if st := p.stats("calls"); st.Accepted != 2 || st.RejectedBusy != 1 {
		t.Errorf("%+v", st)
	}
}

// TestGRPCComesBack: a client that may try again does so when it was told to, and not
// before: by its own word it would have used up its attempts long ago.
func TestGRPCComesBack(t *testing.T) {
	upstream, _ := newGRPC(t)
	p := start(t, fmt.Sprintf(grpcGates, upstream))
	client := dialGRPC(t, p.data, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 2, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1,
		"retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`))
	p.limit("calls", `"closed"`)
	done := make(chan error, 1)
	go func() {
		_, err := client.Check(within(t), &healthpb.HealthCheckRequest{})
		done <- err
	}()
	eventually(t, "it was refused", func() bool { return p.stats("calls").RejectedBusy == 1 })
	p.limit("calls", "1")
	if err := <-done; err != nil {
		t.Errorf("the second attempt: %v", err)
	}
	if st := p.stats("calls"); st.Accepted != 1 || st.RejectedBusy != 1 {
		t.Errorf("%+v", st)
	}
}

// TestGRPCStream: messages pass one by one, a second stream is refused, and the slot comes
// back when the client has seen enough.
func TestGRPCStream(t *testing.T) {
	upstream, service := newGRPC(t)
	p := start(t, fmt.Sprintf(grpcGates, upstream))
	client := dialGRPC(t, p.data)
	ctx, leave := context.WithCancel(within(t))
	defer leave()
	stream, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if res, err := stream.Recv(); res.GetStatus() != want {
			t.Errorf("the stream says %v, %v; want %v", res, err, want)
		}
	}
	next(healthpb.HealthCheckResponse_SERVICE_UNKNOWN)
	for range 3 {
		service.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
		next(healthpb.HealthCheckResponse_SERVING)
		service.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
		next(healthpb.HealthCheckResponse_NOT_SERVING)
	}
	p.inUse("streams", 1)
	second, err := client.Watch(within(t), &healthpb.HealthCheckRequest{Service: "shop"})
	if err == nil {
		_, err = second.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a second stream: %v", err)
	}
	service.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	next(healthpb.HealthCheckResponse_SERVING)
	p.inUse("streams", 1)
	leave()
	p.inUse("streams", 0)
}
