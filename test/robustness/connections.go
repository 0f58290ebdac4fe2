package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// connections knows which process is at the other end of a connection on loopback: replicas share one identity in members, and
// are distinguished by it. It reads /proc, and so knows nothing on other systems than Linux.
type connections struct {
	mu        sync.Mutex
	processes map[int]string // names by process id
}

// lookupTime is how long a process may be unknown: it connects before its start has returned to us.
const lookupTime = time.Second

func newConnections() *connections {
	return &connections{processes: map[int]string{os.Getpid(): judge}}
}

// judge is what this program itself is called as a client.
const judge = "judge"

func (c *connections) add(pid int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[pid] = name
}

func (c *connections) remove(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.processes, pid)
}

type processKey struct{}

// processOf is the name of the process that a request came from; empty: nobody knows.
func processOf(ctx context.Context) string {
	name, _ := ctx.Value(processKey{}).(string)
	return name
}

// context is a proxy's ConnContext.
func (c *connections) context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, processKey{}, c.find(conn))
}

// find looks until the process is known. One that is killed meanwhile is not found, and nothing that it left in the connection
// is passed on.
func (c *connections) find(conn net.Conn) string {
	for deadline := time.Now().Add(lookupTime); ; time.Sleep(10 * time.Millisecond) {
		if inode, err := clientInode(conn); err == nil {
			if name := c.having(inode); name != "" {
				return name
			}
		}
		if time.Now().After(deadline) {
			return ""
		}
	}
}

// having is the process that has a socket open.
func (c *connections) having(inode string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid, name := range c.processes {
		dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, entry := range entries {
			if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && target == "socket:["+inode+"]" {
				return name
			}
		}
	}
	return ""
}

// clientInode is the inode of the socket at the client's end.
func clientInode(conn net.Conn) (string, error) {
	client, err := socketAddress(conn.RemoteAddr())
	if err != nil {
		return "", err
	}
	server, err := socketAddress(conn.LocalAddr())
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	return inodeOf(string(content), client, server)
}

// inodeOf finds a socket in /proc/net/tcp, whose second and third columns are its own address and its peer's, and whose tenth
// is its inode.
func inodeOf(table, own, peer string) (string, error) {
	for line := range strings.Lines(table) {
		if columns := strings.Fields(line); len(columns) > 9 && columns[1] == own && columns[2] == peer {
			return columns[9], nil
		}
	}
	return "", fmt.Errorf("no socket from %s to %s", own, peer)
}

// socketAddress writes an IPv4 address as /proc/net/tcp does.
func socketAddress(address net.Addr) (string, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return "", fmt.Errorf("%s is not a TCP address of IPv4", address)
	}
	return fmt.Sprintf("%08X:%04X", binary.LittleEndian.Uint32(tcp.IP.To4()), tcp.Port), nil
}
