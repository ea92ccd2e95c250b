package main

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// awakeCommand starts this program as what keeps the processors awake.
const awakeCommand = "awake"

// awake keeps every processor from sleeping, by a process that runs on each as long as
// nobody else wants to. A processor that sleeps between two commands runs the next one
// with empty caches. It returns what ends that.
func awake() (end func()) {
	self, err := os.Executable()
	if err != nil {
		panic(unfit(err.Error()))
	}
	cmd := exec.Command(self, awakeCommand)
	cmd.Stderr = os.Stderr
	until, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		panic(unfit("the processors are not kept awake: " + err.Error()))
	}
	return func() {
		_ = until.Close()
		if err := cmd.Wait(); err != nil {
			panic(unfit("the processors were not kept awake: " + err.Error()))
		}
	}
}

// stayAwake is the main of that process: it runs until its input ends.
func stayAwake(until io.Reader) error {
	n := runtime.NumCPU()
	runtime.GOMAXPROCS(n + 1) // one for who hears the end
	failed := make(chan error, n+1)
	for range n {
		go func() {
			runtime.LockOSThread()
			if err := giveWay(); err != nil {
				failed <- err
				return
			}
			for {
				spin(time.Second)
			}
		}()
	}
	go func() {
		_, err := io.Copy(io.Discard, until)
		failed <- err
	}()
	return <-failed
}
