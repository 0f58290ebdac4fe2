package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

const (
	strangers     = 50   // addresses with bad tokens
	badTokens     = 1000 // a second, of all
	goodLogins    = 100  // each with a token that the hub has not seen
	floodBefore   = 3 * time.Second
	loginEvery    = 100 * time.Millisecond
	loginTimeout  = 10 * time.Second
	tokenAudience = "plimsoll"
)

// hostileLogins shows the API bad tokens from many addresses, and counts how many good ones fail meanwhile.
func (b *bench) hostileLogins(ctx context.Context) (err error) {
	hub, calls, err := b.startReplica(ctx, fleet.Settings{"api.unauthenticated": false})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stopReplica(context.WithoutCancel(ctx), hub, calls)) }()
	tokens, err := b.goodTokens(ctx)
	if err != nil {
		return err
	}
	flood := newFlood(hub.REST, tokens[0])
	flooding, stop := context.WithCancel(ctx)
	var flooded errgroup.Group
	for i := range strangers {
		flooded.Go(func() error { return flood.from(flooding, i) })
	}
	if err := pause(ctx, floodBefore); err != nil {
		stop()
		return errors.Join(err, flooded.Wait())
	}
	failed, slowest, statuses := 0, time.Duration(0), map[int]int{}
	for _, token := range tokens {
		began := time.Now()
		status := login(ctx, hub.REST, "127.0.1.1", token)
		slowest = max(slowest, time.Since(began))
		statuses[status]++
		if status != http.StatusOK {
			failed++
		}
		if err := pause(ctx, loginEvery); err != nil {
			stop()
			return errors.Join(err, flooded.Wait())
		}
	}
	lasted := time.Since(flood.began).Seconds()
	stop()
	if err := flooded.Wait(); err != nil {
		return err
	}
	b.report.Record("hostile-logins-failed", float64(failed))
	b.report.Note("hostile logins: %d valid tokens, each of its own, were answered with %v, the slowest in %.0f ms, beside %.0f invalid tokens a second from %d addresses, of which %d were accepted",
		len(tokens), statuses, figures.Milliseconds(slowest), float64(flood.sent.Load())/lasted, strangers, flood.accepted.Load())
	if flood.accepted.Load() > 0 {
		return errors.New("a bad token was accepted")
	}
	return nil
}

// goodTokens are tokens of one account of the hub cluster, which may list members.
func (b *bench) goodTokens(ctx context.Context) ([]string, error) {
	name := metav1.ObjectMeta{Name: "bench-caller"}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet.Namespace, Name: name.Name}}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{auth.Group}, Resources: []string{"clusters"}, Verbs: []string{"list"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, role, binding} {
		if err := client.IgnoreAlreadyExists(b.fleet.Hub.Client().Create(ctx, object)); err != nil {
			return nil, err
		}
	}
	tokens := make([]string, goodLogins)
	for i := range tokens {
		var err error
		if tokens[i], err = b.fleet.Hub.Token(ctx, account.Namespace, account.Name, tokenAudience); err != nil {
			return nil, err
		}
		if slices.Contains(tokens[:i], tokens[i]) {
			return nil, fmt.Errorf("the hub cluster gave token %d twice", i)
		}
	}
	return tokens, nil
}

// A flood is bad tokens that look like a good one but for the signature, so that only the hub cluster can refuse them.
type flood struct {
	address, unsigned string
	began             time.Time
	sent, accepted    atomic.Int64
}

func newFlood(address, good string) *flood {
	signature := len(good) - 1
	for good[signature] != '.' {
		signature--
	}
	return &flood{address: address, unsigned: good[:signature+1], began: time.Now()}
}

// from sends the share of one address until ctx ends.
func (f *flood) from(ctx context.Context, number int) error {
	callers := clientFrom(fmt.Sprintf("127.0.0.%d", 2+number))
	defer callers.CloseIdleConnections()
	random := rand.New(rand.NewPCG(hostileSeed, uint64(number)))
	ticker := time.NewTicker(time.Second * strangers / badTokens)
	defer ticker.Stop()
	var calls errgroup.Group
	for {
		select {
		case <-ctx.Done():
			return calls.Wait()
		case <-ticker.C:
		}
		signature := make([]byte, 256)
		for i := range signature {
			signature[i] = byte(random.Uint32())
		}
		token := f.unsigned + base64.RawURLEncoding.EncodeToString(signature)
		f.sent.Add(1)
		calls.Go(func() error {
			if ask(ctx, callers, f.address, token) == http.StatusOK {
				f.accepted.Add(1)
			}
			return nil
		})
	}
}

// login calls the API once, on a connection of its own from an address.
func login(ctx context.Context, address, from, token string) int {
	caller := clientFrom(from)
	defer caller.CloseIdleConnections()
	return ask(ctx, caller, address, token)
}

func clientFrom(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Timeout: loginTimeout, Transport: &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // who answers is not what is measured
	}}
}

// ask returns the status of the answer; 0: there was none.
func ask(ctx context.Context, caller *http.Client, address, token string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/v1/clusters", nil)
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := caller.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}
