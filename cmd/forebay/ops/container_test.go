//go:build linux

package ops_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

type unixDialer struct{ path string }

func (d *unixDialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", d.path)
}

// instruction is one line of the Dockerfile.
type instruction struct{ name, args string }

func dockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	for line := range strings.Lines(readFile(t, "deploy", "Dockerfile")) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "" && !strings.HasPrefix(name, "#") {
			all = append(all, instruction{name, strings.TrimSpace(args)})
		}
	}
	return all
}

func TestDockerfile(t *testing.T) {
	all := dockerfile(t)
	mod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, "cmd", "forebay", "go.mod"))
	if mod == nil || all[0] != (instruction{"FROM", "golang:" + mod[1] + " AS build"}) {
		t.Errorf("the Dockerfile begins with %v; go.mod says go %v", all[0], mod)
	}
	var user string
	for _, i := range all {
		switch i.name {
		case "USER":
			user = i.args
		case "COPY":
			words := strings.Fields(i.args)
			if strings.HasPrefix(words[0], "--from=") {
				continue
			}
			for _, source := range words[:len(words)-1] {
				if _, err := os.Stat(filepath.Join(repository, source)); err != nil {
					t.Errorf("COPY %s: %v", i.args, err)
				}
			}
		}
	}
	if id, err := strconv.Atoi(strings.Split(user, ":")[0]); err != nil || id == 0 {
		t.Errorf("USER is %q; want a number that is not root's", user)
	}
	for _, module := range replaced(t) {
		want := module + "/go.mod"
		if module == "." {
			want = "go.mod"
		}
		if !strings.Contains(readFile(t, "deploy", "Dockerfile"), "COPY "+want) {
			t.Errorf("go.mod replaces %s, and the Dockerfile does not copy its go.mod before the download", module)
		}
	}
}

// replaced returns the directories that cmd/forebay/go.mod puts in place of modules.
func replaced(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`=> (\.\S+)`).FindAllStringSubmatch(readFile(t, "cmd", "forebay", "go.mod"), -1) {
		all = append(all, path.Join("cmd/forebay", m[1]))
	}
	if len(all) == 0 {
		t.Fatal("cmd/forebay/go.mod replaces nothing")
	}
	return all
}

// The commands of the build stage, in a copy of what they are given, make a static
// program.
func TestDockerfileBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program again; run it without -short")
	}
	dir := t.TempDir()
	source, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	for _, i := range dockerfile(t) {
		if i == (instruction{"FROM", "scratch"}) {
			break
		}
		var err error
		var said []byte
		switch i.name {
		case "COPY":
			words := strings.Fields(i.args)
			to := filepath.Join(source, words[len(words)-1])
			if err = os.MkdirAll(to, 0o755); err != nil {
				break
			}
			for _, from := range words[:len(words)-1] {
				copyOf := filepath.Join(repository, from)
				if from == "." { // everything, the tests' own and git's data apart
					err = copyGo(copyOf, to)
					continue
				}
				said, err = exec.Command("cp", copyOf, to).CombinedOutput()
			}
		case "RUN":
			// With -trimpath the dependencies would be compiled once more than the
			// other tests do, which takes a minute and shows nothing.
			command := strings.Replace(i.args, " -trimpath", "", 1)
			cmd := exec.Command("sh", "-c", strings.Replace(command, "/out/", out+"/", 1))
			cmd.Dir = source
			said, err = cmd.CombinedOutput()
		}
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", i.name, i.args, err, said)
		}
	}
	built := filepath.Join(out, "forebay")
	if said, err := exec.Command(built, "version").CombinedOutput(); err != nil {
		t.Errorf("version: %v\n%s", err, said)
	}
	if said, _ := exec.Command("ldd", built).CombinedOutput(); len(said) > 0 && !strings.Contains(string(said), "not a dynamic executable") && !strings.Contains(string(said), "statically linked") {
		t.Errorf("the program needs libraries, and the image has none:\n%s", said)
	}
}

// copyGo copies what a build of Go needs.
func copyGo(from, to string) error {
	return filepath.WalkDir(from, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(p)
		if os.IsNotExist(err) { // somebody else's, gone meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
}

// As nobody, from a folder that it cannot write, the program serves.
func TestNonRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test is not root's; all the others run the program as who runs them")
	}
	const nobody = 65534
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	dir := filepath.Join(filepath.Dir(program), "as-nobody") // nobody may look in there
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "forebay.yaml")
	writeFile(t, file, behindProxy(t, upstream.URL))
	cmd := exec.Command(program, "serve", "-c", file)
	cmd.Dir = "/"
	cmd.Env = []string{} // no HOME, no PATH: as in a scratch image
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	f := serving(t, cmd)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil || !strings.Contains(string(status), "Uid:\t65534\t65534\t65534\t65534\n") {
		t.Errorf("it does not run as nobody: %v", err)
	}
	if a := get(t, "http://"+f.listen+"/"); a.status != http.StatusNotFound {
		t.Errorf("status %d, want the upstream's 404", a.status)
	}
	writeFile(t, file, strings.Replace(behindProxy(t, upstream.URL), "max_in_flight: 12", "max_in_flight: 13", 1))
	until(t, "the changed file is read", func() bool { return strings.Contains(f.metrics(t), `forebay_limit{gate="all"} 13`) })
}

// In a control group the garbage collector knows the memory limit, and the runtime the
// processors.
func TestControlGroup(t *testing.T) {
	const limit, share = 256 << 20, 0.9 // what the collector gets of it
	memory := controlGroup(t, "memory", map[string]string{"memory.max": strconv.Itoa(limit)}, map[string]string{"memory.limit_in_bytes": strconv.Itoa(limit)})
	cpu := controlGroup(t, "cpu", map[string]string{"cpu.max": "100000 100000"}, map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"})
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	writeFile(t, file, behindProxy(t, upstream.URL))
	// The shell enters the groups and becomes the program, as a container's first
	// process is in its group from the start.
	f := serving(t, exec.Command("sh", "-c", `echo $$ > "$1" && echo $$ > "$2" && exec "$3" serve -c "$4"`,
		"sh", filepath.Join(memory, "cgroup.procs"), filepath.Join(cpu, "cgroup.procs"), program, file))
	scrape := f.metrics(t)
	got := value(t, scrape, "go_gc_gomemlimit_bytes")
	want := float64(limit) * share
	if got < want-1<<20 || got > want+1<<20 {
		t.Errorf("GOMEMLIMIT is %.0f bytes, want %.0f, %.0f %% of the group's", got, want, share*100)
	}
	// Go does not go below 2 where there are 2: one thread alone would stall on
	// every collection.
	threads := value(t, scrape, "go_sched_gomaxprocs_threads")
	if want := float64(min(runtime.NumCPU(), 2)); threads != want {
		t.Errorf("GOMAXPROCS is %.0f in a group of one processor, want %.0f", threads, want)
	}
	if runtime.NumCPU() <= 2 {
		t.Logf("this machine has %d processors, with which a group's quota makes no difference to GOMAXPROCS", runtime.NumCPU())
	}
	t.Logf("memory %s, cpu %s: GOMEMLIMIT %.0f of %d bytes, GOMAXPROCS %.0f", memory, cpu, got, limit, threads)
}

// controlGroup makes a group with limits, of version 2 or else of version 1, or skips.
func controlGroup(t *testing.T, controller string, v2, v1 map[string]string) (dir string) {
	t.Helper()
	name := fmt.Sprintf("forebay-test-%d", os.Getpid())
	var why []string
	for _, at := range []struct {
		under  string
		limits map[string]string
	}{{"/sys/fs/cgroup", v2}, {"/sys/fs/cgroup/unified", v2}, {"/sys/fs/cgroup/" + controller, v1}} {
		dir := filepath.Join(at.under, name)
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			if err = setAll(dir, at.limits); err == nil {
				t.Cleanup(func() { removeGroup(t, dir) })
				return dir
			}
			_ = os.Remove(dir)
		}
		why = append(why, err.Error())
	}
	t.Skipf("no control group for %s can be made here; as root on a machine with cgroup v2 it can: %s", controller, strings.Join(why, "; "))
	return ""
}

// removeGroup removes a group once the kernel has seen its last process end.
func removeGroup(t *testing.T, dir string) {
	t.Helper()
	until(t, "the group "+dir+" can be removed", func() bool {
		err := os.Remove(dir)
		return err == nil || os.IsNotExist(err)
	})
}

func setAll(dir string, limits map[string]string) error {
	for _, name := range []string{"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.max", "memory.max", "memory.limit_in_bytes"} {
		limit, ok := limits[name]
		if !ok {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0) // never made: a plain folder is no group
		if err != nil {
			return err
		}
		_, err = f.WriteString(limit)
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// value returns the value of a metric without labels.
func value(t *testing.T, scrape, metric string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindStringSubmatch(scrape)
	if m == nil {
		t.Fatalf("the scrape has no %s", metric)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
