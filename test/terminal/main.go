// The program `terminal` runs a command in a pseudo-terminal, for tests: what the command writes to it goes to standard output, and each
// line of standard input is a JSON object that types text, resizes the terminal, or signals the command. It ends as the command does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/creack/pty"
)

// What a test asks for.
type request struct {
	Text    string `json:"text"`
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
	Signal  int    `json:"signal"`
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println("terminal 1.1.24")
		return
	}
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: terminal COLUMNS ROWS COMMAND..."))
	}
	columns, err := strconv.ParseUint(os.Args[1], 10, 16)
	fail(err)
	rows, err := strconv.ParseUint(os.Args[2], 10, 16)
	fail(err)
	command := exec.Command(os.Args[3], os.Args[4:]...)
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	fail(err)
	go serve(terminal, command.Process)
	// It ends with an error when nobody has the terminal open any more.
	_, _ = io.Copy(os.Stdout, terminal)
	_ = command.Wait()
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(command.ProcessState.ExitCode())
}

// Does what the test asks for until it has ended; the command does not outlive it.
func serve(terminal *os.File, process *os.Process) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var one request
		fail(json.Unmarshal(lines.Bytes(), &one))
		if one.Text != "" {
			_, _ = terminal.WriteString(one.Text)
		}
		if one.Columns > 0 {
			fail(pty.Setsize(terminal, &pty.Winsize{Cols: one.Columns, Rows: one.Rows}))
		}
		if one.Signal > 0 {
			_ = process.Signal(syscall.Signal(one.Signal))
		}
	}
	_ = process.Kill()
}

func fail(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
