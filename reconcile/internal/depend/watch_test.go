package depend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/members"
)

// placeOfSecrets is the watch of Secrets of a namespace of which one is depended on.
func placeOfSecrets() (*placeStore, *entry) {
	ds := NewIndex(&members.Instances{}, NewOutside(nil, nil), slog.New(slog.DiscardHandler))
	d := OnSecret(inDefault("db")).of("a", "")
	ds.note(NewNeeds(ds.NewFlow("a", configMapKind.GroupKind(), func(types.NamespacedName) {}), inDefault("one")), d)
	e := ds.entries[d.target()]
	return &placeStore{watch: e.watch}, e
}

// listing is a client whose lists are pages.
func listing(page func(asked *metav1.ListOptions, page *metav1.PartialObjectMetadataList)) client.WithWatch {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			page((&client.ListOptions{}).ApplyOptions(options).AsListOptions(), list.(*metav1.PartialObjectMetadataList))
			return nil
		},
	}).Build()
}

func itemNamed(name string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "7"}}
}

// API servers do not heed the limit of a list of version 0, so a namespace with many Secrets would come whole.
func TestAListIsAskedForInPages(t *testing.T) {
	store, e := placeOfSecrets()
	pages := 0
	source := listing(func(asked *metav1.ListOptions, page *metav1.PartialObjectMetadataList) {
		if want := strings.Repeat("x", pages); asked.ResourceVersion != "" || asked.Limit != 500 || asked.Continue != want {
			t.Errorf("asked for version %q, %d objects and the rest of %q; want none, 500 and %q", asked.ResourceVersion, asked.Limit, asked.Continue, want)
		}
		pages++
		page.ResourceVersion = fmt.Sprint(10 + pages)
		page.Items = []metav1.PartialObjectMetadata{itemNamed(fmt.Sprint("other-", pages))}
		if page.Continue = strings.Repeat("x", pages); pages == 3 {
			page.Items, page.Continue = append(page.Items, itemNamed("db")), ""
		}
	})
	lister, ok := store.listWatch(source).(pagedListWatch)
	if !ok {
		t.Fatal("it may stream lists")
	}
	list, err := lister.ListWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := meta.ListAccessor(list); err != nil || all.GetResourceVersion() != "11" || all.GetContinue() != "" || pages != 3 {
		t.Errorf("%d pages make %v (%v), want three, and the version of the first", pages, list, err)
	}
	if meta.LenList(list) != 0 || len(store.listed) != 1 || store.listed[e].version != "7" {
		t.Errorf("%d objects and %v are kept, want the version of what is depended on", meta.LenList(list), store.listed)
	}
}

// largeItem takes a MiB.
func largeItem(name string) metav1.PartialObjectMetadata {
	item := itemNamed(name)
	item.Annotations = map[string]string{"large": strings.Repeat("x", 1<<20)}
	return item
}

func TestAListThatNeverEndsIsNotReadOnAndNothingOfItIsHeld(t *testing.T) {
	store, _ := placeOfSecrets()
	var pages int
	var freed atomic.Int32
	source := listing(func(_ *metav1.ListOptions, page *metav1.PartialObjectMetadataList) {
		if pages++; pages > 10*maxPages {
			t.Fatal("it is read on without end")
		}
		page.Items = []metav1.PartialObjectMetadata{largeItem("db")}
		runtime.AddCleanup(&page.Items[0], func(int) { freed.Add(1) }, 0)
		if pages%2 == 0 { // pages without an object count as well
			page.Items = nil
		}
		page.ResourceVersion, page.Continue = "7", "more"
		if pages%10 == 0 {
			runtime.GC()
		}
	})
	_, err := store.listWatch(source).(pagedListWatch).ListWithContext(t.Context(), metav1.ListOptions{})
	if want := `the list of Secret in namespace "default" has more than 50000 objects or 100 pages`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
	if pages != maxPages || store.listed != nil {
		t.Errorf("%d pages were read and %v is kept", pages, store.listed)
	}
	for freed.Load() < maxPages { // all of them, in the end
		runtime.GC()
	}
	if pause := watchAgain(fmt.Errorf("failed to list: %w", err), 1, 0); pause < watchPause/2 {
		t.Errorf("it is read again after %s", pause)
	}
}

func TestAListWhosePagesAreLargerThanAskedEndsAtANumberOfObjects(t *testing.T) {
	store, _ := placeOfSecrets()
	pages := 0
	source := listing(func(_ *metav1.ListOptions, page *metav1.PartialObjectMetadataList) {
		pages++
		page.Items = make([]metav1.PartialObjectMetadata, maxObjects/4)
		page.Continue = "more"
	})
	if _, err := store.list(t.Context(), source); !errors.As(err, new(*endlessError)) || pages != 4 {
		t.Errorf("%v after %d pages, want an error after four", err, pages)
	}
}

func TestAListThatBeginsAnewIsCountedAnew(t *testing.T) {
	store, _ := placeOfSecrets()
	expired := false
	source := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			page, asked := list.(*metav1.PartialObjectMetadataList), (&client.ListOptions{}).ApplyOptions(options)
			switch {
			case asked.Continue == "":
				page.Items, page.Continue = make([]metav1.PartialObjectMetadata, maxObjects*2/3), "more"
			case !expired:
				expired = true
				return apierrors.NewResourceExpired("compacted")
			default:
				page.Items, page.Continue = make([]metav1.PartialObjectMetadata, maxObjects/4), ""
			}
			return nil
		},
	}).Build()
	if _, err := store.list(t.Context(), source); err != nil || !expired {
		t.Errorf("%v; expired %t", err, expired)
	}
}

func TestTokensThatNoAPIServerSendsAreNotKept(t *testing.T) {
	long := strings.Repeat("9", 1<<16)
	for name, spoil := range map[string]func(*metav1.PartialObjectMetadataList){
		"version of the list":  func(page *metav1.PartialObjectMetadataList) { page.ResourceVersion = long },
		"token to continue":    func(page *metav1.PartialObjectMetadataList) { page.Continue = long },
		"version of an object": func(page *metav1.PartialObjectMetadataList) { page.Items[0].ResourceVersion = long },
	} {
		store, _ := placeOfSecrets()
		_, err := store.list(t.Context(), listing(func(_ *metav1.ListOptions, page *metav1.PartialObjectMetadataList) {
			page.Items = []metav1.PartialObjectMetadata{itemNamed("db")}
			spoil(page)
		}))
		if err == nil || store.listed != nil {
			t.Errorf("%s: error %v, and %d facts are kept", name, err, len(store.listed))
		}
	}
	events := apiwatch.NewFakeWithChanSize(2, false)
	w := newCheckedWatch(events)
	defer w.Stop()
	fine, bad := itemNamed("db"), itemNamed("db")
	bad.ResourceVersion = long
	events.Modify(&fine)
	events.Modify(&bad)
	if e := <-w.ResultChan(); e.Object != &fine {
		t.Errorf("event %v, want the one that was sent", e)
	}
	if e := <-w.ResultChan(); e.Type != apiwatch.Error {
		t.Errorf("event %v, want an error", e)
	}
}

// What joins while a list is read has not been looked for in the pages that have come.
func TestAListSaysNothingOfWhatIsDependedOnOnlySinceItBegan(t *testing.T) {
	store, e := placeOfSecrets()
	ds := store.watch.ds
	late := OnSecret(inDefault("late")).of("a", "")
	source := listing(func(*metav1.ListOptions, *metav1.PartialObjectMetadataList) {
		ds.note(NewNeeds(ds.NewFlow("a", configMapKind.GroupKind(), func(types.NamespacedName) {}), inDefault("two")), late)
	})
	if _, err := store.list(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	store.watch.cancel = func() {}
	if err := store.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if !e.known || ds.entries[late.target()].known {
		t.Errorf("known is what was asked for: %t, and what was not: %t", e.known, ds.entries[late.target()].known)
	}
}
