package fleet

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// echo answers each line with itself, until the test ends.
func echo(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					_, _ = fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// nobody is an address that refuses connections.
func nobody(t *testing.T) string {
	t.Helper()
	var address string
	if err := FreeAddresses(&address); err != nil {
		t.Fatal(err)
	}
	return address
}

func dial(t *testing.T, b *Balancer) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp4", b.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// heard reports whether what is sent comes back in time.
func heard(conn net.Conn, within time.Duration) bool {
	_, _ = fmt.Fprintln(conn, "hello")
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil
}

func TestABalancerSkipsWhoRefusesAndAServiceDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		start func() (*Balancer, error)
		skips bool
	}{"balancer": {NewBalancer, true}, "service": {NewService, false}} {
		b, err := c.start()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		b.Add(nobody(t))
		b.Add(echo(t))
		reached := 0
		for range 4 {
			if heard(dial(t, b), time.Minute) {
				reached++
			}
		}
		if want := map[bool]int{true: 4, false: 2}[c.skips]; reached != want {
			t.Errorf("%s: %d of 4 connections reached somebody, want %d", name, reached, want)
		}
	}
}

func TestAHeldBackendGetsNothingUntilItIsReleased(t *testing.T) {
	b, err := NewBalancer()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	backend := echo(t)
	b.Add(backend)
	old := dial(t, b)
	if !heard(old, time.Minute) {
		t.Fatal("nothing is held, and nothing arrives")
	}
	b.Hold(backend)
	b.Hold(backend)
	if heard(old, 50*time.Millisecond) || heard(dial(t, b), 50*time.Millisecond) {
		t.Error("something arrived at a backend that is held")
	}
	b.Release(backend)
	b.Release(backend)
	if !heard(old, time.Minute) || !heard(dial(t, b), time.Minute) {
		t.Error("nothing arrives at a backend that was released")
	}
}
