//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// member is a worker as the harness sees it: a process that it started.
type member struct {
	assignment
	tape   *tape
	cmd    *exec.Cmd
	orders io.WriteCloser
	exit   chan struct{} // closed when the process is gone
	gone   instant       // when that was seen; only after exit
	failed error         // how it ended; only after exit
	says   string        // the file with what it complained about
	killed bool
	frozen []span
}

// hire starts a worker. program is the executable: this one, or one built with a
// protection removed.
func hire(program, dir string, a assignment) (*member, error) {
	m := &member{assignment: a, exit: make(chan struct{})}
	m.cmd = exec.Command(program, workerCommand)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	errors, err := os.Create(filepath.Join(dir, fmt.Sprintf("worker%d.log", a.Worker)))
	if err != nil {
		return nil, err
	}
	defer errors.Close()
	m.cmd.Stderr, m.says = errors, errors.Name()
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if m.orders, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	says := make(chan bool, 1)
	go func() { // ends with the process, for which part waits
		line, _ := bufio.NewReader(out).ReadString('\n')
		says <- strings.TrimSpace(line) == ready
		io.Copy(io.Discard, out)
		m.failed = m.cmd.Wait()
		m.gone = now()
		close(m.exit)
	}()
	if err := m.tell(a); err != nil {
		return m, err
	}
	if !<-says {
		m.kill()
		why, _ := os.ReadFile(errors.Name())
		return m, fmt.Errorf("chaos: worker %d did not start: %s", a.Worker, why)
	}
	m.tape, err = openTape(a.Tape)
	return m, err
}

// tell sends the worker its assignment or an order.
func (m *member) tell(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = m.orders.Write(append(line, '\n'))
	return err
}

// kill ends the worker as a crash would, and returns once it is gone.
func (m *member) kill() {
	m.killed = true
	m.cmd.Process.Kill()
	<-m.exit
}

// freeze stops the worker, and thaw lets it go on.
func (m *member) freeze() error {
	m.frozen = append(m.frozen, span{now(), 0})
	return m.cmd.Process.Signal(syscall.SIGSTOP)
}

func (m *member) thaw() error {
	m.frozen[len(m.frozen)-1].to = now()
	return m.cmd.Process.Signal(syscall.SIGCONT)
}

// ask tells the worker to end, as whoever runs a program does.
func (m *member) terminate() error { return m.cmd.Process.Signal(syscall.SIGTERM) }

// part ends the worker in good order, and kills it if it does not come to its end.
func (m *member) part() error {
	select {
	case <-m.exit:
		return nil
	default:
	}
	m.tell(order{Do: doFinish})
	select {
	case <-m.exit:
		if m.failed != nil {
			why, _ := os.ReadFile(m.says)
			return fmt.Errorf("chaos: worker %d: %w: %s", m.Worker, m.failed, why)
		}
		return nil
	case <-time.After(m.Patience + m.Work.Long + m.Work.Hold + 20*time.Second):
		m.kill()
		m.killed = false // what it has not decided is forgotten
		return fmt.Errorf("chaos: worker %d did not end", m.Worker)
	}
}

// life returns what the worker wrote and what became of it. It must be gone.
func (m *member) life() life {
	return life{worker: m.Worker, records: m.tape.read(), ended: m.gone, killed: m.killed, frozen: m.frozen}
}

// served returns how many holds of all workers have ended well.
func served(crew []*member) (n uint64) {
	for _, m := range crew {
		n += m.tape.head.done.Load()
	}
	return n
}
