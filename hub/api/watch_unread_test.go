package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// manyUnread objects, each with an error of sizeUnread bytes, are more than fit into what the network keeps for a reader who reads nothing.
const manyUnread, sizeUnread = 3000, 4000

// watchREST opens a watch of the objects of a member over TLS, on a connection of its own, as HTTP/1.1 or HTTP/2. Nothing reads it yet.
func (s *served) watchREST(t *testing.T, who, member, accept string, version2 bool) io.Reader {
	t.Helper()
	transport := s.http.Transport.(*http.Transport).Clone()
	if transport.ForceAttemptHTTP2 = version2; !version2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	}
	ctx, end := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.rest+"/v1/objects:watch?cluster="+member, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = bearing(who)
	request.Header.Set("Accept", accept)
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	})
	if response.StatusCode != http.StatusOK || (response.ProtoMajor == 2) != version2 {
		t.Fatalf("%s %s", response.Proto, response.Status)
	}
	return response.Body
}

// restReaders are the ways to watch over REST.
var restReaders = map[string]struct {
	accept   string
	version2 bool
}{
	"lines over HTTP/1.1":  {"application/x-ndjson", false},
	"lines over HTTP/2":    {"application/x-ndjson", true},
	"events over HTTP/1.1": {"text/event-stream", false},
	"events over HTTP/2":   {"text/event-stream", true},
}

// followed are the messages of a watch over REST, as they are read from now on.
func followed(t *testing.T, from io.Reader) <-chan *restMessage {
	messages := make(chan *restMessage)
	go func() {
		defer close(messages)
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			text := strings.TrimPrefix(lines.Text(), "data: ")
			if text == "" {
				continue
			}
			var one struct{ Result restMessage }
			if json.Unmarshal([]byte(text), &one) != nil {
				return
			}
			select {
			case messages <- &one.Result:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return messages
}

// restMessage is a message of a watch of objects.
type restMessage struct {
	Type, Reason string
	Object       struct {
		Key      struct{ Name string }
		Attempts int
	}
}

// await reads until a message is as it should be.
func await(t *testing.T, what string, messages <-chan *restMessage, is func(*restMessage) bool) {
	t.Helper()
	for timeout := time.After(time.Minute); ; {
		select {
		case message, open := <-messages:
			if !open {
				t.Fatalf("the watch ended before %s", what)
			}
			if is(message) {
				return
			}
		case <-timeout:
			t.Fatalf("did not come: %s", what)
		}
	}
}

// churn changes many objects of dev.
func (r *replica) churn(attempts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range manyUnread {
		key := reconcile.Key{Controller: "webapp", Member: "dev"}
		key.Namespace, key.Name = "shop", fmt.Sprintf("o%06d", i)
		failure := fmt.Sprintf("%d %s", i, strings.Repeat("x", sizeUnread-20))
		r.records[key] = reconcile.Record{Key: key, State: reconcile.StateIdle, Attempts: attempts, LastError: failure}
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// Readers over REST who read nothing cost no memory for what happens meanwhile, and hold up nobody. When they read on they get the newest
// state of everything.
func TestReadersOverRESTWhoReadNothingCostNothingForWhatHappens(t *testing.T) {
	first, _ := watched(t)
	s := serve(t, first, func(o *Options) { o.ReaderPatience = time.Hour })
	round := 1
	first.churn(round)
	unread := map[string]io.Reader{}
	for name, by := range restReaders {
		unread[name] = s.watchREST(t, "admin", "dev", by.accept, by.version2)
	}
	newest := func() func(*restMessage) bool {
		changed := map[string]bool{}
		return func(m *restMessage) bool {
			if m.Object.Attempts == round {
				changed[m.Object.Key.Name] = true
			}
			return len(changed) == manyUnread
		}
	}
	quick := followed(t, s.watchREST(t, "admin", "dev", "application/x-ndjson", true))
	change := func(rounds int) {
		for range rounds {
			round++
			first.churn(round)
			await(t, "all changes", quick, newest())
		}
	}
	change(3) // until nothing more goes into buffers of the network, which for HTTP/2 are in this process
	before := heap()
	const rounds, each = 4, manyUnread * sizeUnread // bytes of the changes of a round, at least
	change(rounds)
	after := heap()
	t.Logf("the memory in use was %d KiB, and is %d KiB after %d KiB that were not read by each of %d", before>>10, after>>10, rounds*each>>10, len(unread))
	if after > before+rounds*each/2 {
		t.Error("what is not read is kept")
	}
	for name, from := range unread {
		await(t, name+": the newest state", followed(t, from), newest())
	}
}

// Who reads nothing for too long loses the watch and its place, and the log says why. Others go on, also those to whom nothing is sent for
// longer than that.
func TestAWatchOverRESTEndsWhenItsReaderTakesNothing(t *testing.T) {
	first, second := watched(t)
	s := serve(t, first, func(o *Options) { o.ReaderPatience = 300 * time.Millisecond })
	quiet := map[string]<-chan *restMessage{} // of a member in which little happens
	for name, by := range restReaders {
		quiet[name] = followed(t, s.watchREST(t, "admin", "test", by.accept, by.version2))
		await(t, name+": all there is", quiet[name], func(m *restMessage) bool { return m.Type == "WATCH_EVENT_TYPE_SYNCED" })
	}
	ended := func() int {
		n := 0
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, `"API stream ended"`) && strings.Contains(line, `"user":"stuck"`) && strings.Contains(line, `"level":"INFO"`) &&
				strings.Contains(line, `"reason":"its reader has taken nothing for 300ms"`) {
				n++
			}
		}
		return n
	}
	time.Sleep(time.Second) // longer than the patience: nothing was sent that anybody could take
	second.attempts("test", "cart", 1)
	for name, messages := range quiet {
		await(t, name+": a change after a while", messages, func(m *restMessage) bool { return m.Object.Attempts == 1 })
	}
	s.give("stuck", auth.Access{Verb: "list", Resource: "objects"})
	first.churn(1)
	for _, by := range restReaders {
		s.watchREST(t, "stuck", "dev", by.accept, by.version2)
	}
	eventually(t, "the watches of who reads nothing end", func() bool { return ended() == len(restReaders) })
	second.attempts("test", "cart", 2)
	for name, messages := range quiet {
		await(t, name+": a change after others have ended", messages, func(m *restMessage) bool { return m.Object.Attempts == 2 })
	}
}
