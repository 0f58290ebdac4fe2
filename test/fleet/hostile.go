package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// A Hostility is one way in which a hostile member attacks the hub.
type Hostility string

// What a hostile member can do.
const (
	// WellBehaved answers everything as the real API server does.
	WellBehaved Hostility = ""
	// HugeQuantities sends pods and nodes with quantities such as 1e-2147483647.
	HugeQuantities Hostility = "huge-quantities"
	// LargeLists answers each list with 512 MiB.
	LargeLists Hostility = "large-lists"
	// CompressedLists answers each list with gzip of 512 MiB of empty objects.
	CompressedLists Hostility = "compressed-lists"
	// EndlessPages adds another page to each list.
	EndlessPages Hostility = "endless-pages"
	// RepeatedPages answers each list with pages that all have the same objects, and at times none.
	RepeatedPages Hostility = "repeated-pages"
	// UntypedAnswers lists pods with such quantities in protobuf, without a content type.
	UntypedAnswers Hostility = "untyped-answers"
	// SmallPages adds another page to each list, of large objects of which little is kept, and so few that no page is large.
	SmallPages Hostility = "small-pages"
	// LongVersions answers each list, and sends on each watch, resource versions of several MiB, which a client would send back in URLs.
	LongVersions Hostility = "long-versions"
	// HugeReplicas sends an enabled ReplicaSet of as many replicas as its type allows, and one pod of it without a slot.
	HugeReplicas Hostility = "huge-replicas"
	// OtherKinds answers each list, and sends on each watch, definitions with schemas that take a hundred times as much memory as
	// they have bytes, or that are nested without end.
	OtherKinds Hostility = "other-kinds"
	// TextAnswers answers everything but probes as text, of which clients that want it raw do not notice that it is no JSON.
	TextAnswers Hostility = "text-answers"
	// LargeHeaders answers everything but probes with 2 MiB of headers.
	LargeHeaders Hostility = "large-headers"
	// EndlessEvents sends ADDED events with new objects of every kind as fast as they are read.
	EndlessEvents Hostility = "endless-events"
	// UnfinishedEvents begins an event on each watch and never ends it.
	UnfinishedEvents Hostility = "unfinished-events"
	// SlowBodies sends a byte of each answer every second.
	SlowBodies Hostility = "slow-bodies"
	// SilentWatches accepts watches and sends nothing on them.
	SilentWatches Hostility = "silent-watches"
	// HugeCalls calls the hub's webhook with bodies that are large, slow or deeply nested.
	HugeCalls Hostility = "huge-calls"
	// UnreadCalls floods the hub's webhook with calls over HTTP/2 that leave no room for their answers, and of which many are refused.
	UnreadCalls Hostility = "unread-calls"
	// LongRetryAfter refuses everything but probes with 503 and Retry-After: 3600.
	LongRetryAfter Hostility = "long-retry-after"
	// RefusedWatches refuses each watch with a Status that does not end.
	RefusedWatches Hostility = "refused-watches"
	// EmptyBytes answers each list with compressed blocks that stand for nothing, and each watch with white space, as fast as they are
	// read.
	EmptyBytes Hostility = "empty-bytes"
	// OtherFormats answers in YAML, HTML, broken JSON or broken protobuf, and leaves such watches open.
	OtherFormats Hostility = "other-formats"
	// OthersIdentity answers with the UID of another member's kube-system namespace.
	OthersIdentity Hostility = "others-identity"
	// VersionsBack sends events whose resource versions become smaller.
	VersionsBack Hostility = "versions-back"
	// EndlessDiscovery answers discovery with documents that do not end.
	EndlessDiscovery Hostility = "endless-discovery"
	// Redirects sends every reader to another member's API server.
	Redirects Hostility = "redirects"
	// RefusalStorms answers at random with 429, 500 or 503.
	RefusalStorms Hostility = "refusal-storms"
	// SlowHandshakes keeps each TLS handshake waiting.
	SlowHandshakes Hostility = "slow-handshakes"
	// NoisyTexts refuses everything but probes and watches with a long text that looks like lines of a log, and lists objects that
	// are named so.
	NoisyTexts Hostility = "noisy-texts"
	// AllHostilities does something else at each request.
	AllHostilities Hostility = "all"
)

// Hostilities are all but AllHostilities, in a fixed order.
var Hostilities = []Hostility{
	HugeQuantities, UntypedAnswers, LargeLists, CompressedLists, EndlessPages, RepeatedPages, SmallPages, LongVersions, HugeReplicas,
	OtherKinds, TextAnswers, LargeHeaders,
	EndlessEvents, UnfinishedEvents, SlowBodies, SilentWatches, HugeCalls, UnreadCalls,
	LongRetryAfter, RefusedWatches, EmptyBytes, OtherFormats, OthersIdentity, VersionsBack, EndlessDiscovery, Redirects, RefusalStorms,
	SlowHandshakes, NoisyTexts,
}

// HostileOptions describe a hostile member.
type HostileOptions struct {
	// Name of the member.
	Name string
	// Seed decides what AllHostilities does at each request, and what is random in others.
	Seed uint64
	// Victim is another member of the same hub: whose identity OthersIdentity uses, and where Redirects leads.
	Victim *Member
}

// A Hostile is a member with a real API server, behind a TLS server that lies about it. It can be registered like any other
// member. Its methods may be called from several goroutines at once.
type Hostile struct {
	*Member

	victim    string // URL of the victim's API server
	victimUID string // of the victim's kube-system namespace

	mu        sync.Mutex
	random    *rand.Rand
	hostility Hostility
	turned    chan struct{} // closed when the hostility changes
	calls     []load        // that call the hub's webhooks: of HugeCalls, UnreadCalls and AllHostilities

	called callCount
}

// StartHostile starts a hostile member that behaves well and is not registered. The fleet does not stop it.
func (f *Fleet) StartHostile(ctx context.Context, options HostileOptions) (*Hostile, error) {
	uid, err := options.Victim.clusterUID(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := kube.Start(ctx, kube.Options{Name: options.Name, Minimal: true, Log: f.options.Log})
	if err != nil {
		return nil, err
	}
	h := &Hostile{
		Member: &Member{Name: options.Name, Cluster: cluster},
		victim: options.Victim.Proxy.URL(), victimUID: uid,
		random: rand.New(rand.NewPCG(options.Seed, 0)), turned: make(chan struct{}),
	}
	h.Proxy, err = kube.NewProxy(cluster, kube.ProxyOptions{Intercept: h.intercept, Handshake: h.handshake})
	if err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return h, nil
}

// clusterUID is what identifies the member's cluster.
func (m *Member) clusterUID(ctx context.Context) (string, error) {
	var system corev1.Namespace
	if err := m.Client().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("member %s: read its identity: %w", m.Name, err)
	}
	return string(system.UID), nil
}

// Stop ends the member and its cluster.
func (h *Hostile) Stop() error {
	h.turn(WellBehaved)
	return h.stop()
}

// load calls the hub's webhooks from start to stop.
type load interface {
	start()
	stop()
}

// Behave changes what the member does, and breaks its connections, so that the hub meets it everywhere. HugeCalls and UnreadCalls need a
// registered member whose webhook the hub has installed.
func (h *Hostile) Behave(ctx context.Context, hostility Hostility) error {
	calls, err := h.loads(ctx, hostility)
	if err != nil {
		return err
	}
	h.turn(hostility)
	h.mu.Lock()
	h.calls = calls
	h.mu.Unlock()
	for _, l := range calls {
		l.start()
	}
	h.Proxy.Cut()
	return nil
}

// loads are those of a hostility.
func (h *Hostile) loads(ctx context.Context, hostility Hostility) (loads []load, err error) {
	huge, unread := hostility == HugeCalls || hostility == AllHostilities, hostility == UnreadCalls || hostility == AllHostilities
	if !huge && !unread {
		return nil, nil
	}
	var targets []string
	err = Await(ctx, "the hub to report member "+h.Name+" its URLs", func(ctx context.Context) (_ bool, err error) {
		targets, err = h.callTargets(ctx)
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	if huge {
		loads = append(loads, newCallers(targets, &h.called))
	}
	if unread {
		flood, err := newFlood(targets[0], &h.called)
		if err != nil {
			return nil, err
		}
		loads = append(loads, flood)
	}
	return loads, nil
}

// Called returns how many calls the member has sent to the hub's webhooks as HugeCalls and UnreadCalls so far, and how many bytes of their bodies were read to be sent.
func (h *Hostile) Called() (calls, bytes int64) { return h.called.calls.Load(), h.called.bytes.Load() }

// callTargets are the URLs that the hub has given to the member's API server, for pods and, where WebApps are installed, for
// conversions.
func (h *Hostile) callTargets(ctx context.Context) ([]string, error) {
	pods, err := h.WebhookURL(ctx)
	if err != nil {
		return nil, err
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err = h.Client().Get(ctx, client.ObjectKey{Name: crd.Name}, definition)
	if apierrors.IsNotFound(err) {
		return []string{pods.String()}, nil
	}
	if err != nil {
		return nil, err
	}
	convert, found, err := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "url")
	if err != nil || !found {
		return nil, errors.Join(err, errors.New("the hub has not yet said where WebApps are converted"))
	}
	return []string{pods.String(), convert}, nil
}

// ForgetWebhooks takes out of the member what a hub has written about where its webhooks are, as for another hub: the policies let no
// hub change the URLs that another one wrote. InstallWebApps and Prepare make what is missing then.
func (h *Hostile) ForgetWebhooks(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: webhook.ConfigurationName}
	for _, configuration := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta},
	} {
		if err := client.IgnoreNotFound(h.Client().Delete(ctx, configuration)); err != nil {
			return err
		}
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	definition.SetName(crd.Name)
	unconverted := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	return client.IgnoreNotFound(h.Client().Patch(ctx, definition, unconverted))
}

// turn changes the hostility, ends the answers that are under way, and stops the calls of the one before.
func (h *Hostile) turn(hostility Hostility) {
	h.mu.Lock()
	calls := h.calls
	h.hostility, h.calls = hostility, nil
	close(h.turned)
	h.turned = make(chan struct{})
	h.mu.Unlock()
	for _, l := range calls {
		l.stop()
	}
}

// now is what to do at the next request, until the channel is closed.
func (h *Hostile) now() (Hostility, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hostility == AllHostilities {
		return Hostilities[h.random.IntN(len(Hostilities))], h.turned
	}
	return h.hostility, h.turned
}

// number is a random one below n.
func (h *Hostile) number(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.IntN(n)
}

// handshakeDelay is longer than the hub waits for a handshake.
const handshakeDelay = 30 * time.Second

func (h *Hostile) handshake(ctx context.Context) {
	hostility, turned := h.now()
	if hostility != SlowHandshakes {
		return
	}
	select {
	case <-ctx.Done():
	case <-turned:
	case <-time.After(handshakeDelay):
	}
}

// intercept lies, or lets the real API server answer. Lies end when the hostility changes.
func (h *Hostile) intercept(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hostility, turned := h.now()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-turned:
				cancel()
			case <-ctx.Done():
			}
		}()
		lie := h.lies()[hostility]
		if lie == nil || !lie(w, r.WithContext(ctx)) {
			next.ServeHTTP(w, r)
		}
	})
}

// A lie answers a request and returns true, or leaves it to the real API server.
type lie func(w http.ResponseWriter, r *http.Request) bool

func (h *Hostile) lies() map[Hostility]lie {
	return map[Hostility]lie{
		HugeQuantities: hugeQuantities, UntypedAnswers: untypedAnswer, LargeLists: largeList, CompressedLists: compressedList,
		EndlessPages: endlessPage, RepeatedPages: repeatedPage, SmallPages: smallPage, LongVersions: longVersion,
		HugeReplicas: hugeReplicas, OtherKinds: otherKind, TextAnswers: textAnswer, LargeHeaders: largeHeaders,
		EndlessEvents: endlessEvents, UnfinishedEvents: unfinishedEvent, SlowBodies: slowBody, SilentWatches: silentWatch,
		LongRetryAfter: longRetryAfter, RefusedWatches: refusedWatch, EmptyBytes: emptyBytes, OtherFormats: h.otherFormat,
		OthersIdentity: h.othersIdentity, VersionsBack: versionsBack, EndlessDiscovery: endlessDiscovery, Redirects: h.redirect,
		RefusalStorms: h.refuse, NoisyTexts: noisyText,
	}
}

func (h *Hostile) othersIdentity(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path != "/api/v1/namespaces/"+metav1.NamespaceSystem {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // who asked may be gone
		"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]string{"name": metav1.NamespaceSystem, "uid": h.victimUID},
	})
	return true
}

func (h *Hostile) redirect(w http.ResponseWriter, r *http.Request) bool {
	http.Redirect(w, r, h.victim+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	return true
}

func (h *Hostile) refuse(w http.ResponseWriter, _ *http.Request) bool {
	statuses := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInternalServerError, 0}
	status := statuses[h.number(len(statuses))]
	if status == 0 {
		return false
	}
	http.Error(w, "", status)
	return true
}
