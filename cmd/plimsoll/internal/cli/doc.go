// Package cli is the command line `plimsoll`, which also works as `kubectl plimsoll`.
//
// It registers members with package enroll, with the rights of the person who runs it, and asks the hub's API everything else over a connection
// of package connection. Where to look: root.go for the commands, output.go and table.go for what is printed, completion.go for what shells
// complete, exit.go for exit codes and what errors say; each command has a file of its own.
//
// It prints no token, in no format, and keeps nothing on disk.
package cli
