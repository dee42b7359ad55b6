// A pseudo-terminal for tests, pinned: what is built of it is the program in this folder.
module machinist/test/terminal

go 1.26.0

require github.com/creack/pty v1.1.24
