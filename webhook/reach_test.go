package webhook

import (
	"context"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

func TestASingleFailureChangesNothingThatIsKnown(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	step := func(r reach, is reached) reach { return r.checked(is, "it hangs", at) }
	known := step(reach{}, isReached)
	for n, want := range []reached{isReached, isReached, notReached, notReached} {
		if known = step(known, notReached); known.is != want {
			t.Errorf("after %d failures: %d, want %d", n+1, known.is, want)
		}
	}
	if known = step(known, isReached); known.is != isReached || known.failures != 0 {
		t.Errorf("after a success: %+v", known)
	}
	if first := step(reach{}, notReached); first.is != notChecked || first.why == "" {
		t.Errorf("after the first check ever failed: %+v", first)
	}
}

func TestChecksAreRareUnlessThereIsAReason(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	never := time.Time{}
	for name, c := range map[string]struct {
		is        reach
		undecided time.Time
		want      time.Duration
	}{
		"reached":                            {reach{is: isReached, at: at}, never, checkEvery},
		"reached, and pods slipped through":  {reach{is: isReached, at: at}, at.Add(time.Second), checkAgain},
		"they slipped through before":        {reach{is: isReached, at: at}, at.Add(-time.Second), checkEvery},
		"a first failure":                    {reach{is: isReached, failures: 1, at: at}, never, checkSoon},
		"not reached":                        {reach{is: notReached, failures: checksToFail, at: at}, never, checkAgain},
		"nobody knows":                       {reach{is: notChecked, at: at}, never, checkAgain},
		"nobody knows after a first failure": {reach{is: notChecked, failures: 1, at: at}, never, checkSoon},
	} {
		if got := c.is.next(c.undecided).Sub(at); got != c.want {
			t.Errorf("%s: checked again after %s, want %s", name, got, c.want)
		}
	}
	if !(reach{}).next(never).IsZero() {
		t.Error("a member that was never checked waits")
	}
}

func TestOnlyTheNameOfAServiceIsLocalToACluster(t *testing.T) {
	for text, want := range map[string]bool{
		"https://plimsoll-webhook.plimsoll-system.svc:443": true, "https://a.b.svc.cluster.local": true, "https://a.b.svc.": true,
		"https://hub.example:9443": false, "https://svc.example.com": false, "https://10.0.0.1:9443": false, "https://[fd00::1]:9443": false,
	} {
		at, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := ClusterLocal(at); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// checkedSite is a site whose installer checks, with a namespace for it, and an API server that does what answer says.
func checkedSite(t *testing.T, namespace *corev1.Namespace, answer func(*corev1.Pod) error) (*site, *int) {
	t.Helper()
	s, asked := newSite(t, empty()), new(int)
	s.options.CheckNamespace = func(string) string { return "plimsoll-system" }
	s.options.CheckImage = "example.com/pause"
	c := fake.NewClientBuilder().WithObjects(empty(), namespace).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			var options client.CreateOptions
			options.ApplyOptions(opts)
			if len(options.DryRun) == 0 {
				t.Errorf("%s was created, and not as a dry run", object.GetName())
			}
			*asked++
			return answer(object.(*corev1.Pod))
		},
	}).Build()
	s.client = c
	return s, asked
}

func checkNamespace(labels map[string]string) *corev1.Namespace {
	all := map[string]string{corev1.LabelMetadataName: "plimsoll-system"}
	for key, value := range labels {
		all[key] = value
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-system", Labels: all}}
}

func marks(pod *corev1.Pod) error {
	pod.Annotations[checkedAnnotation] = pod.Annotations[checkAnnotation]
	return nil
}

func ignores(*corev1.Pod) error { return nil }

func TestAMemberIsWellOnlyWhenItsAPIServerReachesTheWebhook(t *testing.T) {
	enabled := map[string]string{"plimsoll.dev/enabled": "true"}
	for name, c := range map[string]struct {
		labels map[string]string
		answer func(*corev1.Pod) error
		want   string
		says   string
		asked  int // in an hour
	}{
		"reached":     {enabled, marks, ReasonCurrent, "places new pods as they are created", 7},
		"not reached": {enabled, ignores, ReasonUnreachable, "gets no answer from hub.example:9443", 64},
		"refused": {enabled, func(*corev1.Pod) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "check", nil)
		}, ReasonUnproven, "`plimsoll register` again", 62},
		"the namespace is not enabled": {nil, marks, ReasonUnproven, "Label it plimsoll.dev/enabled=true", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				s, asked := checkedSite(t, checkNamespace(c.labels), c.answer)
				for end := time.Now().Add(time.Hour); time.Now().Before(end); {
					_, err := s.reconcile(g)
					g.Expect(err).NotTo(HaveOccurred())
					time.Sleep(time.Second)
				}
				g.Expect(s.Installation("eu").Reason).To(Equal(c.want))
				g.Expect(s.Installation("eu").Message).To(ContainSubstring(c.says))
				g.Expect(*asked).To(BeNumerically("<=", c.asked))
				reached, known := s.Reached()["eu"]
				g.Expect(known).To(Equal(c.want != ReasonUnproven))
				g.Expect(reached).To(Equal(c.want == ReasonCurrent))
				s.Forget(t.Context(), "eu", client.ObjectKey{})
				g.Expect(s.Reached()).To(BeEmpty())
			})
		})
	}
}

func TestTheFirstLookAtAMemberAlreadyTellsThatItReachesTheWebhook(t *testing.T) {
	g := NewWithT(t)
	s, asked := checkedSite(t, checkNamespace(map[string]string{"plimsoll.dev/enabled": "true"}), marks)
	result, err := s.reconcile(g)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).NotTo(Equal(reconcile.Done()), "it is checked again without a change")
	g.Expect(*asked).To(Equal(1))
	g.Expect(s.Installation("eu").Reason).To(Equal(ReasonCurrent))
}

func TestANameThatOnlyTheHubsClusterResolvesIsSaidToBeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		s, _ := checkedSite(t, checkNamespace(map[string]string{"plimsoll.dev/enabled": "true"}), ignores)
		base, err := ParseBaseURL("https://plimsoll-webhook.plimsoll-system.svc:443")
		g.Expect(err).NotTo(HaveOccurred())
		s.wanted.BaseURL = base
		for range checksToFail + 1 {
			_, err := s.reconcile(g)
			g.Expect(err).NotTo(HaveOccurred())
			time.Sleep(checkSoon)
		}
		g.Expect(s.Installation("eu").Message).To(ContainSubstring("only the hub's own cluster resolves: set webhook.url"))
	})
}

func TestAnyReplicaAnswersAnyChecksOwnMark(t *testing.T) {
	g := NewWithT(t)
	h := newHub(t, toSpot)
	h.options.Router = routerFunc(func(string) (bool, string) { return false, "" }) // of nobody
	const nonce = "0b4f8a52-7d0c-4c0e-9a47-2f3c1d5e6f70"
	check := func(dryRun, nonce string) string {
		return allowed(g, h.call(h.path(), reviewOf("1", `,"dryRun":`+dryRun+`,"object":{"metadata":{"annotations":{"plimsoll.dev/webhook-check":"`+nonce+`"}}}`)), "1")
	}
	g.Expect(check("true", nonce)).To(Equal(`[{"op":"add","path":"/metadata/annotations/plimsoll.dev~1webhook-checked","value":"` + nonce + `"}]`))
	g.Expect(h.counted(outcomeCheck)).To(Equal(1.0))
	g.Expect(check("false", nonce)).To(BeEmpty(), "a pod that is created for good is none")
	g.Expect(check("true", `a\"b`)).To(BeEmpty())
	g.Expect(h.counted(outcomeNoOwner)).To(Equal(2.0))
}
