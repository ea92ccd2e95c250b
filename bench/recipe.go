package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	nameDirect  = "the upstream itself"
	nameOurs    = "forebay"
	nameNginx   = "nginx"
	nameHAProxy = "HAProxy"
	nameCaddy   = "Caddy"
)

// recipe is how to set up one proxy.
type recipe struct {
	name     string
	kind     kind
	program  string
	settings string        // with LISTEN, PORT, UPSTREAM, ADMIN and DIR in the place of what is known only then
	file     string        // to which they are written
	args     []string      // with FILE and DIR
	version  func() string // nil: it is built from here
	about    string        // why it is set up as it is
}

// recipes has the proxies in the order of the tables. All are told to keep as many
// connections to the upstream as there are requests, to speak HTTP/1.1 there, to tell it
// who called, and to write no log of requests that were served.
var recipes = []recipe{
	{
		name: nameOurs, kind: ours, program: "forebay", file: "forebay.yaml", args: []string{"serve", "-c", "FILE"},
		about: "Its defaults. Every request passes a gate.",
		settings: `listen: LISTEN
admin: ADMIN
upstream: http://UPSTREAM
log: {to: DIR/forebay.log}
gates:
  all: {max_in_flight: 1000}
  one: {max_in_flight: 1}
  slots: {max_in_flight: 20, max_wait: 100ms}
routes:
  - {match: /, gate: all}
  - {match: /full, gate: one}
  - {match: /full/hold, gate: one}
  - {match: /slots, gate: slots}
`,
	},
	{
		name: nameNginx, kind: rival, program: "nginx", file: "nginx.conf", args: []string{"-p", "DIR", "-c", "FILE"},
		version: func() string { return strings.TrimPrefix(firstLine("nginx", "-v"), "nginx version: ") },
		about:   "Two workers. Buffers that hold a large answer in memory: with its defaults it writes part of it to a file.",
		settings: `daemon off;
worker_processes auto;
worker_rlimit_nofile 16384;
pid DIR/nginx.pid;
error_log stderr emerg;
events { worker_connections 8192; }
http {
  access_log off;
  limit_conn_zone $server_port zone=one:1m;
  limit_conn_zone $server_port zone=slots:1m;
  limit_conn_status 503;
  keepalive_timeout 75s;
  keepalive_requests 1000000000;
  client_body_temp_path DIR/nginx-body;
  proxy_temp_path DIR/nginx-proxy;
  fastcgi_temp_path DIR/nginx-fastcgi;
  uwsgi_temp_path DIR/nginx-uwsgi;
  scgi_temp_path DIR/nginx-scgi;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $remote_addr;
  proxy_set_header X-Forwarded-Host $host;
  proxy_set_header X-Forwarded-Proto $scheme;
  proxy_buffer_size 32k;
  proxy_buffers 8 32k;
  proxy_max_temp_file_size 0;
  upstream behind { server UPSTREAM; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen LISTEN backlog=4096;
    location / { proxy_pass http://behind; }
    location /full { limit_conn one 1; proxy_pass http://behind; }
    location /slots { limit_conn slots 20; proxy_pass http://behind; }
  }
}
`,
	},
	{
		name: nameHAProxy, kind: rival, program: "haproxy", file: "haproxy.cfg", args: []string{"-f", "FILE"},
		version: func() string { return strings.Join(strings.Fields(firstLine("haproxy", "-v"))[:3], " ") },
		about:   "Two threads, connections shared between all requests. A full limit refuses by a rule; 20 slots are maxconn, with its queue.",
		settings: `global
  maxconn 6000
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-keep-alive 75s
  timeout queue 100ms
  http-reuse always
  option splice-response
  option forwardfor
frontend all
  bind LISTEN backlog 4096
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  acl full path_beg /full
  http-request return status 503 content-type text/plain string full if full { be_conn(one) ge 1 }
  use_backend one if full
  use_backend slots if { path_beg /slots }
  default_backend behind
backend behind
  server s UPSTREAM pool-max-conn 256
backend one
  server s UPSTREAM
backend slots
  server s UPSTREAM maxconn 20
`,
	},
	{
		name: nameCaddy, kind: rival, program: "caddy", file: "Caddyfile", args: []string{"run", "--adapter", "caddyfile", "--config", "FILE"},
		version: func() string { return "Caddy " + firstLine("caddy", "version") },
		about:   "HTTP/1.1, no compression. Its limit is the number of requests above which it takes the upstream for unhealthy; for 20 slots it tries again for 100 ms.",
		settings: `{
  admin off
  auto_https off
  servers {
    protocols h1
  }
  log {
    output discard
  }
}
http://:PORT {
  bind 127.0.0.1
  handle /full* {
    reverse_proxy UPSTREAM {
      fail_duration 1ms
      unhealthy_request_count 1
    }
  }
  handle /slots* {
    reverse_proxy UPSTREAM {
      fail_duration 1ms
      unhealthy_request_count 20
      lb_try_duration 100ms
      lb_try_interval 10ms
      transport http {
        compression off
        keepalive_idle_conns_per_host 256
      }
    }
  }
  handle {
    reverse_proxy UPSTREAM {
      transport http {
        compression off
        keepalive_idle_conns_per_host 256
      }
    }
  }
}
`,
	},
}

// start starts a proxy before an upstream.
func (r recipe) start(upstream string) (*proxy, error) {
	dir, err := workshop()
	if err != nil {
		return nil, err
	}
	program := findProgram(r.program)
	if r.name == nameOurs {
		if program, err = ourProgram(); err != nil {
			return nil, err
		}
	}
	if dir, err = os.MkdirTemp(dir, strings.ToLower(r.program)+"-"); err != nil {
		return nil, err
	}
	p := &proxy{name: r.name, kind: r.kind}
	if p.address, err = freeAddress(); err != nil {
		return nil, err
	}
	if p.admin, err = freeAddress(); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(p.address) // it has one
	path := filepath.Join(dir, r.file)
	fill := strings.NewReplacer("LISTEN", p.address, "PORT", port, "UPSTREAM", upstream, "ADMIN", p.admin, "DIR", dir, "FILE", path)
	if err := os.WriteFile(path, []byte(fill.Replace(r.settings)), 0o644); err != nil {
		return nil, err
	}
	var args []string
	for _, a := range r.args {
		args = append(args, fill.Replace(a))
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	p.process, err = start(p.address, cmd)
	return p, err
}

// ourProgram builds the program.
func ourProgram() (string, error) {
	dir, err := workshop()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "forebay")
	if _, err := os.Stat(path); err == nil {
		return path, nil // built for the first lab
	}
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "cmd", "forebay")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
}

// proxySettings is the end of the document: how each proxy was set up.
func proxySettings(p *printer) {
	p.line("")
	p.line("## How the proxies are set up")
	for _, r := range recipes {
		p.line("")
		p.line(r.name + ". " + r.about)
		p.line("")
		p.line("```")
		p.line(strings.TrimSpace(r.settings))
		p.line("```")
	}
}
