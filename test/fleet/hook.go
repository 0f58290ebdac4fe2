package fleet

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HookOptions say what a [Hook] is asked about.
type HookOptions struct {
	// Name of its configuration, a DNS label.
	Name string
	// Namespace whose new pods it is asked about.
	Namespace string
	// Mutating asks it among the webhooks that may change pods, where the pods have no name yet; else it is asked after
	// all of those.
	Mutating bool
	// Decide gets the body of a call. "" from it lets the pod pass, anything else is the reason why not. It is called from
	// several goroutines at once.
	Decide func(body []byte) (refusal string)
}

// A Hook is an admission webhook that is not the hub's. It changes nothing.
type Hook struct {
	member *Member
	server *httptest.Server
	config client.Object
}

// NewHook installs one.
func (m *Member) NewHook(ctx context.Context, options HookOptions) (*Hook, error) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerCall(w, r, options.Decide) }))
	h := &Hook{member: m, server: server, config: configuration(options, server)}
	if err := m.Client().Create(ctx, h.config); err != nil {
		server.Close()
		return nil, fmt.Errorf("member %s: install the webhook %s: %w", m.Name, options.Name, err)
	}
	return h, nil
}

func configuration(options HookOptions, server *httptest.Server) client.Object {
	var (
		meta   = metav1.ObjectMeta{Name: options.Name}
		name   = options.Name + ".example.com"
		target = admissionregistrationv1.WebhookClientConfig{
			URL:      ptr.To(server.URL),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}
		rules = []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		}}
		namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: options.Namespace}}
		policy     = ptr.To(admissionregistrationv1.Fail)
		effects    = ptr.To(admissionregistrationv1.SideEffectClassNone)
		versions   = []string{"v1"}
	)
	if options.Mutating {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name, ClientConfig: target, Rules: rules, NamespaceSelector: namespaces,
			FailurePolicy: policy, SideEffects: effects, AdmissionReviewVersions: versions,
		}}}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: name, ClientConfig: target, Rules: rules, NamespaceSelector: namespaces,
		FailurePolicy: policy, SideEffects: effects, AdmissionReviewVersions: versions,
	}}}
}

func answerCall(w http.ResponseWriter, r *http.Request, decide func(body []byte) string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	refusal := decide(body)
	answer := admissionv1.AdmissionReview{
		TypeMeta: review.TypeMeta,
		Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: refusal == ""},
	}
	if refusal != "" {
		answer.Response.Result = &metav1.Status{Message: refusal, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // who called may be gone
}

// Remove takes the webhook out of the member.
func (h *Hook) Remove(ctx context.Context) error {
	err := h.member.Client().Delete(ctx, h.config)
	h.server.Close()
	return err
}
