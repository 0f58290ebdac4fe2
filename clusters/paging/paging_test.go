package paging_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
)

// server lists ConfigMaps, two a page, whatever it is asked for; expires says of each page whether its state has expired by then.
type server struct {
	client.Reader
	names   []string
	expires func(page int) error
	token   string // of each page; empty: where the next one begins
	asked   int
}

func (s *server) List(_ context.Context, into client.ObjectList, given ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(given)
	s.asked++
	at, _ := strconv.Atoi(options.Continue)
	if s.expires != nil {
		if err := s.expires(s.asked); err != nil {
			return err
		}
	}
	list, end := into.(*corev1.ConfigMapList), min(at+2, len(s.names))
	for _, name := range s.names[at:end] {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if end < len(s.names) {
		list.Continue = strconv.Itoa(end)
	}
	if s.token != "" {
		list.Continue = s.token
	}
	return nil
}

// read returns the names that are taken from a list, at most so many.
func read(t *testing.T, s *server, most int) (names []string, restarts int, err error) {
	t.Helper()
	var list corev1.ConfigMapList
	err = paging.Pages(t.Context(), s, &list, func() bool {
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return len(names) < most
	}, func() { names, restarts = nil, restarts+1 })
	return names, restarts, err
}

var five = []string{"a", "b", "c", "d", "e"}

func TestAListIsReadToItsEnd(t *testing.T) {
	s := &server{names: five}
	names, _, err := read(t, s, 100)
	if diff := cmp.Diff(five, names); err != nil || diff != "" || s.asked != 3 {
		t.Errorf("%v after %d pages: %s", err, s.asked, diff)
	}
}

func TestAListIsReadNoFurtherThanIsNeeded(t *testing.T) {
	s := &server{names: five}
	if names, _, err := read(t, s, 2); err != nil || len(names) != 2 || s.asked != 1 {
		t.Errorf("%v after %d pages: %v", names, s.asked, err)
	}
}

func TestAListWhoseStateHasExpiredGoesOnWhereTheServerAllowsIt(t *testing.T) {
	s := &server{names: five}
	s.expires = func(page int) error {
		if page != 2 {
			return nil
		}
		expired := apierrors.NewResourceExpired("too old")
		expired.ErrStatus.Continue = "2"
		return expired
	}
	names, restarts, err := read(t, s, 100)
	if diff := cmp.Diff(five, names); err != nil || diff != "" || restarts != 0 {
		t.Errorf("%v after %d restarts: %s", err, restarts, diff)
	}
}

func TestAListWhoseStateHasExpiredBeginsAgain(t *testing.T) {
	s := &server{names: five}
	s.expires = func(page int) error {
		if page == 2 {
			return apierrors.NewResourceExpired("too old")
		}
		return nil
	}
	names, restarts, err := read(t, s, 100)
	if diff := cmp.Diff(five, names); err != nil || diff != "" || restarts != 1 {
		t.Errorf("%v after %d restarts: %s", err, restarts, diff)
	}
}

func TestAListThatExpiresAgainAndAgainIsGivenUp(t *testing.T) {
	s := &server{names: five}
	s.expires = func(page int) error {
		if page%2 == 0 {
			return apierrors.NewResourceExpired("too old")
		}
		return nil
	}
	if _, restarts, err := read(t, s, 100); !apierrors.IsResourceExpired(err) || restarts != 2 {
		t.Errorf("%v after %d restarts", err, restarts)
	}
}

func TestAnotherErrorEndsTheList(t *testing.T) {
	refused := errors.New("forbidden")
	s := &server{names: five, expires: func(page int) error {
		if page == 3 {
			return fmt.Errorf("page 3: %w", refused)
		}
		return nil
	}}
	if _, restarts, err := read(t, s, 100); !errors.Is(err, refused) || restarts != 0 || s.asked != 3 {
		t.Errorf("%v after %d pages and %d restarts", err, s.asked, restarts)
	}
}

// Tokens are sent back in URLs.
func TestATokenThatNoAPIServerWouldSendIsNotSentBack(t *testing.T) {
	long := strings.Repeat("%", 7<<20)
	s := &server{names: five, token: long}
	if _, _, err := read(t, s, 100); err == nil || !strings.Contains(err.Error(), "token to continue") || s.asked != 1 {
		t.Errorf("a page with a long token: %v, after %d pages", err, s.asked)
	}
	s = &server{names: five, expires: func(page int) error {
		if page != 2 {
			return nil
		}
		expired := apierrors.NewResourceExpired("expired")
		expired.ErrStatus.Continue = long
		return expired
	}}
	if names, restarts, err := read(t, s, 100); err != nil || restarts != 1 || len(names) != len(five) {
		t.Errorf("an expired list with a long token: %v after %d restarts: %v", names, restarts, err)
	}
}
