package clusters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

func TestARegistrationSecretBecomesAReadyMember(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	api.addPod("web")
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")

	status := member.Status()
	f.g.Expect(status.Version).To(Equal("v1.36.1"))
	f.g.Expect(status.UID).To(Equal("cluster-a"))
	f.g.Expect(status.Server).To(Equal(api.Listener.Addr().String()))
	f.g.Expect(status.LastProbe).NotTo(BeZero())
	f.g.Expect(status.RegisteredAt.Unix()).To(BeEquivalentTo(1001))
	f.g.Expect(status.Registration.Annotations).To(Equal(map[string]string{"team": "shop"}))
	f.g.Expect(status.Kinds).To(Equal([]KindStatus{{Kind: "v1 Pod", Engaged: true}, {Kind: "v1 ConfigMap", Engaged: true}}))
	for _, kind := range []string{ConditionAccepted, ConditionReachable, ConditionWarm, ConditionPermitted} {
		f.g.Eventually(f.condition("a", kind)).Should(HavePrefix("True/"), kind)
	}
	f.g.Expect(f.metric("plimsoll_member_state{member=a,state=Ready}")()).To(Equal(1.0))
	f.g.Expect(f.metric("plimsoll_member_state{member=a,state=Connecting}")()).To(Equal(0.0))
	f.g.Eventually(f.events.with("a Normal/Joined")).Should(Equal(1))
	f.g.Expect(f.aware.live("a")()).To(Equal(1))
	cl, err := f.Get(context.Background(), "a")
	f.g.Expect(err).NotTo(HaveOccurred())
	f.g.Expect(cl).To(BeIdenticalTo(member))
}

func TestTheOtherLabelOfMulticlusterRuntimeRegistersAsWellAndMayTakeTurns(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	labelled := func(label string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Labels = map[string]string{label: "true"} }
	}
	f.secrets.put("a", api.kubeconfig(), labelled(MulticlusterRuntimeLabel))
	f.awaitReady("a")
	for turn := range 20 {
		f.secrets.put("a", api.kubeconfig(), labelled(memberLabels[turn%2]))
	}
	f.g.Eventually(func() string { s, _ := f.Status("a"); return s.Registration.ResourceVersion }).Should(Equal("21"))
	f.g.Expect(f.aware.live("a")()).To(Equal(1))
	f.g.Expect(f.aware.members("a")).To(HaveLen(1), "it never left")
}

func TestAMemberLeavesWhenItsSecretIsDeletedOrNoLongerLabelled(t *testing.T) {
	for name, leave := range map[string]func(f *fleet, api *fakeAPI){
		"deleted": func(f *fleet, _ *fakeAPI) { f.secrets.remove("a") },
		"unlabelled": func(f *fleet, api *fakeAPI) {
			f.secrets.put("a", api.kubeconfig(), func(s *corev1.Secret) { s.Labels = nil })
		},
		"label is not true": func(f *fleet, api *fakeAPI) {
			f.secrets.put("a", api.kubeconfig(), func(s *corev1.Secret) { s.Labels[MemberLabel] = "TRUE" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, api := newFleet(t), newFakeAPI(t, "cluster-a")
			f.secrets.put("a", api.kubeconfig())
			member := f.awaitReady("a")
			done, ok := member.Watch(&corev1.Pod{})
			f.g.Expect(ok).To(BeTrue())
			leave(f, api)
			f.g.Eventually(f.aware.live("a")).Should(BeZero())
			f.g.Eventually(done).Should(BeClosed())
			f.g.Eventually(f.state("a")).Should(BeEmpty())
			_, err := f.Get(context.Background(), "a")
			f.g.Expect(errors.Is(err, multicluster.ErrClusterNotFound)).To(BeTrue())
			f.g.Eventually(func() []string {
				var series []string
				for key := range gathered(f.g, f.metrics) {
					series = append(series, key)
				}
				return series
			}).ShouldNot(ContainElement(ContainSubstring("member=a")))
		})
	}
}

func TestASecretThatLosesItsKeyIsToldAndTheMemberRunsOn(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	f.awaitReady("a")
	f.secrets.put("a", nil)
	f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("False/" + kubeconfig.ReasonNoKubeconfig))
	f.g.Expect(f.state("a")()).To(Equal("Ready/Ready"))
	f.g.Expect(f.aware.live("a")()).To(Equal(1))
	f.g.Eventually(f.events.with("a Warning/NoKubeconfig")).Should(Equal(1))
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(f.condition("a", ConditionAccepted)).Should(Equal("True/Accepted"))
	f.g.Expect(f.aware.members("a")).To(HaveLen(1))
}

func TestWhatIsWrongWithARegistrationIsToldOnceAndMendedWithoutARestart(t *testing.T) {
	good := newFakeAPI(t, "cluster-good")
	for name, tc := range map[string]struct {
		secret     string
		kubeconfig func(*fakeAPI) []byte
		spoil      func(*fakeAPI)
		want       string
	}{
		"no key":      {kubeconfig: func(*fakeAPI) []byte { return nil }, want: "Refused/NoKubeconfig"},
		"broken YAML": {kubeconfig: func(*fakeAPI) []byte { return []byte("users: [" + sample.Canary) }, want: "Refused/InvalidKubeconfig"},
		"exec": {kubeconfig: func(*fakeAPI) []byte {
			return sample.KubeconfigOf(sample.GoodServer, "exec: {command: "+sample.Canary+"}")
		}, want: "Refused/ExecNotAllowed"},
		"wrong token":    {spoil: func(api *fakeAPI) { api.setToken("another") }, want: "Refused/Unauthorized"},
		"not ready":      {spoil: func(api *fakeAPI) { api.fault("/readyz", 500) }, want: "Unreachable/NotReady"},
		"hangs":          {spoil: func(api *fakeAPI) { api.fault("/readyz", hangs) }, want: "Unreachable/Timeout"},
		"no permission":  {spoil: func(api *fakeAPI) { api.deny("create pods", true) }, want: "Degraded/NotPermitted"},
		"kind hangs":     {spoil: func(api *fakeAPI) { api.fault("/api/v1/pods", hangs) }, want: "Degraded/KindsMissing"},
		"kind forbidden": {spoil: func(api *fakeAPI) { api.fault("/api/v1/pods", 403) }, want: "Degraded/KindsMissing"},
		"wrong CA": {kubeconfig: func(api *fakeAPI) []byte {
			ca, _ := sample.KeyPair()
			return sample.KubeconfigOf("server: "+api.URL+"\ncertificate-authority-data: "+base64Of(ca), "token: "+api.token)
		}, want: "Refused/CertificateNotTrusted"},
		"nobody listens": {kubeconfig: func(*fakeAPI) []byte { return sample.KubeconfigOf("server: https://127.0.0.1:1", sample.GoodUser) }, want: "Unreachable/ConnectionRefused"},
		"outside":        {kubeconfig: func(*fakeAPI) []byte { return sample.KubeconfigOf("server: https://10.0.0.1", sample.GoodUser) }, want: "Refused/ServerNotAllowed"},
		"reserved name":  {secret: "hub", want: "Refused/InvalidName"},
		"dotted name":    {secret: "a.b", want: "Refused/InvalidName"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, func(o *Options) { // on a busy machine nothing but what hangs may take too long: its problem would be another one
				o.ProbeTimeout, o.RequestTimeout, o.WarmTimeout = 2*time.Second, 5*time.Second, 5*time.Second
			})
			api := newFakeAPI(t, "cluster-a")
			f.secrets.put("healthy", good.kubeconfig())
			healthy := f.awaitReady("healthy")
			secret, kubeconfig := cmp.Or(tc.secret, "a"), api.kubeconfig()
			if tc.kubeconfig != nil {
				kubeconfig = tc.kubeconfig(api)
			}
			if tc.spoil != nil {
				tc.spoil(api)
			}
			f.secrets.put(secret, kubeconfig)
			f.g.Eventually(f.state(secret)).Should(Equal(tc.want))
			state, reason := tc.want[:len(tc.want)-len(reasonOf(tc.want))-1], reasonOf(tc.want)
			f.g.Eventually(f.events.with(secret + " Warning/" + reason)).Should(Equal(1))
			f.g.Expect(f.metric("plimsoll_member_state{member=" + secret + ",state=" + state + "}")()).To(Equal(1.0))
			if state == "Refused" {
				f.g.Eventually(f.metric("plimsoll_member_refused_total{reason=" + reason + "}")).Should(Equal(1.0))
			}

			f.g.Expect(healthy.Ready()).To(BeTrue())
			f.g.Expect(f.aware.live("healthy")()).To(Equal(1))
			if tc.secret != "" {
				return // a name cannot be changed
			}
			api.setToken(sample.Canary + "-cluster-a")
			api.fault("/readyz", 0)
			api.fault("/api/v1/pods", 0)
			api.deny("create pods", false)
			f.secrets.put(secret, api.kubeconfig())
			f.awaitReady(secret)
			f.g.Eventually(f.aware.live(secret)).Should(Equal(1))
			f.g.Expect(f.events.with(secret + " Warning/" + reason)()).To(Equal(1))
		})
	}
}

func reasonOf(state string) string {
	for i := range state {
		if state[i] == '/' {
			return state[i+1:]
		}
	}
	return ""
}

func TestAHungMemberDoesNotDelayOthersAndCanBeRemoved(t *testing.T) {
	f, hung, good := newFleet(t, func(o *Options) { o.ProbeTimeout = 0; o.WarmTimeout = 0 }), newFakeAPI(t, "cluster-h"), newFakeAPI(t, "cluster-g")
	hung.fault("/*", hangs)
	f.secrets.put("hung", hung.kubeconfig())
	f.g.Eventually(func() int { return hung.count("GET /readyz") }).ShouldNot(BeZero())
	f.secrets.put("good", good.kubeconfig())
	f.awaitReady("good")
	f.g.Expect(f.state("hung")()).To(Equal("Connecting/Connecting"))
	f.secrets.remove("hung")
	f.g.Eventually(f.state("hung")).Should(BeEmpty())
}

func TestAMemberThatHangsOnOneKindWorksWithTheOthers(t *testing.T) {
	f, api := newFleet(t, func(o *Options) { o.WarmTimeout = 0 }), newFakeAPI(t, "cluster-a")
	api.addPod("web")
	api.fault("/api/v1/configmaps", hangs)
	f.secrets.put("a", api.kubeconfig())
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
	member, ok := f.Member("a")
	f.g.Expect(ok).To(BeTrue())
	f.g.Expect(member.Has(&corev1.Pod{})).To(BeTrue())
	f.g.Expect(member.Has(&corev1.ConfigMap{})).To(BeFalse())
	f.g.Expect(member.GetClient().Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "web"}, &corev1.Pod{})).To(Succeed())

	err := member.GetClient().List(context.Background(), &corev1.ConfigMapList{})
	var notWarm *NotWarmError
	f.g.Expect(errors.As(err, &notWarm)).To(BeTrue(), "error: %v", err)
	f.g.Expect(notWarm.Kind).To(Equal("v1 ConfigMap"))

	engaged := len(f.aware.of("a"))
	api.fault("/api/v1/configmaps", 0)
	f.awaitReady("a")
	f.g.Eventually(func() int { return len(f.aware.of("a")) }).Should(BeNumerically(">", engaged))
	f.g.Expect(f.aware.live("a")()).To(Equal(1), "it is the same member that is engaged again")
}

func TestAKindThatGoesIsDisengagedAndJoinsAgain(t *testing.T) {
	for name, status := range map[string]int{"gone": 404, "forbidden": 403} {
		t.Run(name, func(t *testing.T) {
			f, api := newFleet(t), newFakeAPI(t, "cluster-a")
			f.secrets.put("a", api.kubeconfig())
			member := f.awaitReady("a")
			done, ok := member.Watch(&corev1.Pod{})
			f.g.Expect(ok).To(BeTrue())
			other, _ := member.Watch(&corev1.ConfigMap{})
			api.fault("/api/v1/pods", status)
			f.g.Eventually(done).Should(BeClosed())
			f.g.Expect(other).NotTo(BeClosed())
			f.g.Eventually(f.state("a")).Should(Equal("Degraded/KindsMissing"))
			f.g.Expect(member.GetClient().List(context.Background(), &corev1.PodList{})).To(MatchError(ContainSubstring("v1 Pod is not cached")))
			api.fault("/api/v1/pods", 0)
			f.awaitReady("a")
			f.g.Expect(member.Has(&corev1.Pod{})).To(BeTrue())
			f.g.Expect(other).NotTo(BeClosed())
		})
	}
}

func TestAMomentary404CostsNoKind(t *testing.T) {
	f, api := newFleet(t, func(o *Options) { o.RetryMin = 0; o.RetryMax = 0 }), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")
	done, _ := member.Watch(&corev1.Pod{})
	before := api.count("GET /api/v1/pods")
	api.fault("/api/v1/pods", 404)
	f.g.Eventually(func() int { return api.count("GET /api/v1/pods") }).Should(BeNumerically(">", before))
	api.fault("/api/v1/pods", 0)
	again := api.count("GET /api/v1/pods")
	f.g.Eventually(func() int { return api.count("GET /api/v1/pods") }).Should(BeNumerically(">=", again+2))
	f.g.Expect(done).NotTo(BeClosed())
	f.g.Expect(member.Has(&corev1.Pod{})).To(BeTrue())
}

func TestAnOptionalKindMayBeMissing(t *testing.T) {
	f := newFleet(t, func(o *Options) {
		optional := configMapKind
		optional.Optional = true
		o.Kinds = []Kind{podKind, optional}
	})
	api := newFakeAPI(t, "cluster-a")
	api.fault("/api/v1/configmaps", 404)
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")
	f.g.Expect(member.Status().Kinds[1]).To(Equal(KindStatus{Kind: "v1 ConfigMap", Reason: "NotFound"}))
}

func TestAPermissionBesideAKindMattersWhereTheKindIs(t *testing.T) {
	f := newFleet(t, func(o *Options) {
		optional := configMapKind
		optional.Optional = true
		o.Kinds = []Kind{podKind, optional}
		o.Access = []Access{{Resource: "secrets", Verbs: []string{"create"}, For: "ConfigMaps", Beside: &corev1.ConfigMap{}}}
	})
	api := newFakeAPI(t, "cluster-a")
	api.fault("/api/v1/configmaps", 404)
	api.deny("create secrets", true)
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")
	api.fault("/api/v1/configmaps", 0)
	f.g.Eventually(f.state("a")).Should(Equal("Degraded/NotPermitted"))
	f.g.Expect(member.Status().Message).To(ContainSubstring("create secrets (ConfigMaps)"))
	api.fault("/api/v1/configmaps", 404)
	f.g.Eventually(f.state("a")).Should(Equal("Ready/Ready"))
}

func TestAMemberThatStopsAnsweringIsUnreachableAndComesBack(t *testing.T) {
	for name, fault := range map[string]int{"hangs": hangs, "not ready": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			f, api := newFleet(t), newFakeAPI(t, "cluster-a")
			f.secrets.put("a", api.kubeconfig())
			member := f.awaitReady("a")
			api.fault("/readyz", fault)
			f.g.Eventually(f.state("a")).Should(HavePrefix("Unreachable/"))
			f.g.Expect(member.BreakerOpen()).To(BeTrue())
			f.g.Expect(member.Ready()).To(BeFalse())
			f.g.Expect(f.aware.live("a")()).To(Equal(1), "caches are kept")
			f.g.Expect(member.GetClient().List(context.Background(), &corev1.PodList{})).To(Succeed(), "reads are served")
			err := member.Live().List(context.Background(), &corev1.PodList{})
			f.g.Expect(errors.Is(err, ErrBreakerOpen)).To(BeTrue(), "error: %v", err)
			api.fault("/readyz", 0)
			f.awaitReady("a")
			f.g.Expect(member.BreakerOpen()).To(BeFalse())
			f.g.Expect(member.Live().List(context.Background(), &corev1.PodList{})).To(Succeed())
		})
	}
}

func TestOneFailedProbeIsNotEnoughToGiveAMemberUp(t *testing.T) {
	f, api := newFleet(t, func(o *Options) { o.FailureThreshold = 1000 }), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	member := f.awaitReady("a")
	api.fault("/readyz", 500)
	before := api.count("GET /readyz")
	f.g.Eventually(func() int { return api.count("GET /readyz") }).Should(BeNumerically(">", before+3))
	f.g.Expect(member.Ready()).To(BeTrue())
	f.g.Expect(member.BreakerOpen()).To(BeFalse())
}

func TestAnotherClusterBehindTheAddressIsNotMixedUpWithTheFormer(t *testing.T) {
	f, api := newFleet(t), newFakeAPI(t, "cluster-a")
	f.secrets.put("a", api.kubeconfig())
	former := f.awaitReady("a")
	api.fault("/readyz", 500)
	f.g.Eventually(f.state("a")).Should(HavePrefix("Unreachable/"))
	api.answer("/api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"metadata": map[string]string{"uid": "cluster-rebuilt"}})
	})
	api.fault("/readyz", 0)
	f.g.Eventually(func() string { s, _ := f.Status("a"); return s.UID }).Should(Equal("cluster-rebuilt"))
	f.g.Expect(f.awaitReady("a")).NotTo(BeIdenticalTo(former))
	f.g.Eventually(f.aware.live("a")).Should(Equal(1))
}

func TestAnOlderMemberThatTakesAnothersIdentityIsTheOneThatIsRefused(t *testing.T) {
	g := NewWithT(t)
	f := newFleet(t)
	evil, good := newFakeAPI(t, "uid-evil"), newFakeAPI(t, "uid-good")
	f.secrets.put("evil", evil.kubeconfig())
	f.awaitReady("evil")
	f.secrets.put("good", good.kubeconfig())
	f.awaitReady("good")
	evil.mu.Lock()
	evil.uid = "uid-good"
	evil.mu.Unlock()
	evil.fault("/readyz", 500) // after a failure it is asked for its identity again
	g.Eventually(func() int { return evil.count("GET /readyz") }).Should(BeNumerically(">", 3))
	probes := evil.count("GET /readyz")
	g.Eventually(func() int { return evil.count("GET /readyz") }).Should(BeNumerically(">", probes))
	evil.fault("/readyz", 0)
	g.Eventually(f.state("evil")).Should(Equal("Refused/" + ReasonDuplicateCluster))
	g.Consistently(f.state("good"), "300ms").Should(Equal("Ready/Ready"))
}

// keepNonces has a server keep the nonces of proofs, as the Lease of a cluster does.
func keepNonces(api *fakeAPI) {
	var mu sync.Mutex
	var lease metav1.PartialObjectMetadata
	api.answer(identityPath("plimsoll-system"), func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPatch && json.NewDecoder(r.Body).Decode(&lease) != nil {
			fail(w, http.StatusBadRequest)
			return
		}
		write(w, lease)
	})
}

func TestA403ForItsIdentityDoesNotCostAMemberItsPlace(t *testing.T) {
	const system = "/api/v1/namespaces/kube-system"
	f := newFleet(t, func(o *Options) { o.FailureThreshold = 1000 })
	good, evil := newFakeAPI(t, "uid-good"), newFakeAPI(t, "uid-good")
	showing := func(s *corev1.Secret) { s.Annotations[IdentityAnnotation] = "plimsoll-system" }
	keepNonces(good)
	keepNonces(evil)
	f.secrets.put("good", good.kubeconfig(), showing)
	f.secrets.put("evil", evil.kubeconfig(), showing)
	f.awaitReady("good")
	f.awaitReady("evil")
	for _, status := range []int{http.StatusForbidden, 0} {
		good.fault(system, status)
		asked := good.count("GET " + system)
		good.fault("/readyz", http.StatusInternalServerError) // after a failure it is asked for its identity again
		probes := good.count("GET /readyz")
		f.g.Eventually(func() int { return good.count("GET /readyz") }).Should(BeNumerically(">", probes+1))
		good.fault("/readyz", 0)
		f.g.Eventually(func() int { return good.count("GET " + system) }).Should(BeNumerically(">", asked))
	}
	for _, name := range []string{"good", "evil"} {
		f.g.Consistently(f.state(name), "300ms").Should(Equal("Ready/Ready"))
	}
}

// Who asks for a member that has no status is answered that nobody registered it.
func TestAProviderIsSyncedWhenEveryRegistrationHasAStatus(t *testing.T) {
	const registrations = 500
	f := newFleet(t, func(o *Options) {
		for i := range registrations {
			o.Secrets.(*fakeSecrets).put(fmt.Sprintf("member-%03d", i), []byte("no kubeconfig"))
		}
	})
	for !f.Synced() {
		runtime.Gosched()
	}
	if known := len(f.Statuses()); known != registrations {
		t.Errorf("it is synced, and %d of %d registrations have a status", known, registrations)
	}
}
