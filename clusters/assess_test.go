package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// healthy is what a member without fault reports.
func healthy(edit ...func(*report)) *report {
	r := &report{
		healthReport: healthReport{probed: true, reachable: true, identity: identity{version: "v1.36.1", uid: "u"}},
		server:       "member.example:6443", admitted: true, checked: true,
		kinds: []kindReport{{KindStatus: KindStatus{Kind: "v1 Pod", Engaged: true}, tried: true}},
	}
	for _, e := range edit {
		e(r)
	}
	return r
}

func TestTheStateIsWhatAPersonHasToKnowFirst(t *testing.T) {
	unready := func(r *report) { r.reachable, r.problem = false, unreachable(ReasonTimeout, "late") }
	missing := func(r *report) {
		r.kinds[0] = kindReport{KindStatus: KindStatus{Kind: "v1 Pod", Reason: "NotFound"}, tried: true}
	}
	for name, tc := range map[string]struct {
		view view
		want string
	}{
		"new":              {view{}, "Connecting/Connecting"},
		"refused":          {view{refusal: refused(kubeconfig.ReasonExecNotAllowed, "no")}, "Refused/ExecNotAllowed"},
		"not probed":       {view{member: &report{}}, "Connecting/Connecting"},
		"unreachable":      {view{member: healthy(unready)}, "Unreachable/Timeout"},
		"being warmed":     {view{member: healthy(func(r *report) { r.kinds[0].tried = false })}, "Connecting/Warming"},
		"duplicate":        {view{refusal: refused(ReasonDuplicateCluster, "no"), member: healthy(func(r *report) { r.admitted = false })}, "Refused/DuplicateCluster"},
		"ready":            {view{member: healthy()}, "Ready/Ready"},
		"bad change":       {view{refusal: refused(kubeconfig.ReasonExecNotAllowed, "no"), member: healthy()}, "Ready/Ready"},
		"kind missing":     {view{member: healthy(missing)}, "Degraded/KindsMissing"},
		"optional missing": {view{member: healthy(missing, func(r *report) { r.kinds[0].optional = true })}, "Ready/Ready"},
		"not permitted":    {view{member: healthy(func(r *report) { r.denied = []string{"create pods"} })}, "Degraded/NotPermitted"},
		"both":             {view{member: healthy(missing, func(r *report) { r.denied = []string{"create pods"} })}, "Degraded/KindsMissing"},
		"nobody could say": {view{member: healthy(func(r *report) { r.checked = false })}, "Ready/Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := assess(tc.view, Status{}, time.Unix(1, 0))
			NewWithT(t).Expect(string(s.State) + "/" + s.Reason).To(Equal(tc.want))
		})
	}
}

func TestTimesMoveOnlyWithWhatTheyAreAbout(t *testing.T) {
	g := NewWithT(t)
	first := assess(view{member: healthy()}, Status{}, time.Unix(1, 0))
	second := assess(view{member: healthy(func(r *report) { r.lastProbe = time.Unix(2, 0) })}, first, time.Unix(2, 0))
	g.Expect(second.Since).To(Equal(time.Unix(1, 0)))
	g.Expect(onlyProbed(first, second)).To(BeTrue())
	third := assess(view{member: healthy(func(r *report) { r.denied = []string{"create pods"} })}, second, time.Unix(3, 0))
	g.Expect(third.Since).To(Equal(time.Unix(3, 0)))
	g.Expect(onlyProbed(second, third)).To(BeFalse())
	g.Expect(meta.FindStatusCondition(third.Conditions, ConditionPermitted).LastTransitionTime).To(Equal(metav1.NewTime(time.Unix(3, 0))))
	g.Expect(meta.FindStatusCondition(third.Conditions, ConditionWarm).LastTransitionTime).To(Equal(metav1.NewTime(time.Unix(1, 0))))
	g.Expect(meta.FindStatusCondition(first.Conditions, ConditionPermitted).Status).To(Equal(metav1.ConditionTrue), "an older snapshot stays what it was")
}

func TestEveryFailureHasAReasonAndNoneRepeatsWhatTheMemberSaid(t *testing.T) {
	g := NewWithT(t)
	op := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, tc := range []struct {
		err  error
		want string
	}{
		{op(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "Unreachable/ConnectionRefused"},
		{op(&net.DNSError{Err: "no such host", Name: sample.Canary, IsNotFound: true}), "Unreachable/NameNotResolved"},
		{op(&kubeconfig.AddrError{Addr: netip.MustParseAddr("169.254.169.254"), Rule: "rule"}), "Refused/ServerNotAllowed"},
		{context.DeadlineExceeded, "Unreachable/Timeout"},
		{&intake.TimeoutError{Member: "a", Limit: time.Second}, "Unreachable/Timeout"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "Refused/CertificateNotTrusted"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "Refused/CertificateNotTrusted"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}}, "Refused/CertificateNotTrusted"},
		{tls.RecordHeaderError{Msg: sample.Canary}, "Unreachable/TLSFailed"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, "Refused/Unauthorized"},
		{apierrors.NewUnauthorized(sample.Canary), "Refused/Unauthorized"},
		{apierrors.NewInternalError(errors.New(sample.Canary)), "Unreachable/NotReady"},
		{apierrors.NewTooManyRequests(sample.Canary, 1), "Unreachable/NotReady"},
		{intake.ErrTooLarge, "Unreachable/NotReady"},
		{errors.New(sample.Canary), "Unreachable/ConnectionFailed"},
	} {
		p := classify(fmt.Errorf("probe %s: %w", sample.Canary, tc.err))
		g.Expect(string(p.state)+"/"+p.reason).To(Equal(tc.want), "%T", tc.err)
		g.Expect(p.message).NotTo(ContainSubstring(sample.Canary), "%T", tc.err)
	}
}

func TestVersionsAndUIDsThatAreNoneAreNotShown(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parseVersion([]byte(`{"gitVersion":"v1.36.1+k3s1"}`))).To(Equal("v1.36.1+k3s1"))
	g.Expect(parseVersion([]byte(`{"gitVersion":"<script>"}`))).To(BeEmpty())
	g.Expect(parseVersion([]byte(`nonsense`))).To(BeEmpty())
	g.Expect(parseUID([]byte(`{"metadata":{"uid":"2ab1-C"}}`))).To(Equal("2ab1-C"))
	g.Expect(parseUID([]byte(`{"metadata":{"uid":"a b"}}`))).To(BeEmpty())
}
