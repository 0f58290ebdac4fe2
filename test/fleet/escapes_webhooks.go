package fleet

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

func webhookEscapes() []Escape {
	// of changes the hub's configuration as the hub has written it.
	of := func(change func(*admissionregistrationv1.MutatingWebhook)) func(context.Context, *prisoner) error {
		return func(ctx context.Context, p *prisoner) error {
			all := p.AdmissionregistrationV1().MutatingWebhookConfigurations()
			found, err := all.Get(ctx, webhook.ConfigurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			body, err := changed(found.Webhooks, change)
			if err != nil {
				return err
			}
			kind, data, options := patch(body)
			_, err = all.Patch(ctx, found.Name, kind, data, options)
			return err
		}
	}
	return []Escape{
		{Name: "have pods sent to another URL", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.ClientConfig.URL = ptr.To(elsewhere) })},
		{Name: "have Secrets sent to the hub", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.Rules[0].Resources = []string{"secrets"} })},
		{Name: "have every kind sent to the hub", try: of(func(w *admissionregistrationv1.MutatingWebhook) {
			w.Rules[0].APIGroups, w.Rules[0].Resources = []string{"*"}, []string{"*"}
		})},
		{Name: "decide about pods of kube-system", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.NamespaceSelector = nil })},
		{Name: "hold the cluster up while the hub is away", try: of(func(w *admissionregistrationv1.MutatingWebhook) {
			w.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		})},
		{Name: "hold pods up by calls that take long", try: of(func(w *admissionregistrationv1.MutatingWebhook) { w.TimeoutSeconds = ptr.To[int32](10) })},
		{Name: "hold pods up by many calls", try: func(ctx context.Context, p *prisoner) error {
			all := p.AdmissionregistrationV1().MutatingWebhookConfigurations()
			found, err := all.Get(ctx, webhook.ConfigurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for i := range 3 * min(len(found.Webhooks), 1) {
				more := *found.Webhooks[0].DeepCopy()
				more.Name = fmt.Sprintf("more-%d.%s", i, more.Name)
				found.Webhooks = append(found.Webhooks, more)
			}
			body, err := changed(found.Webhooks, func(*admissionregistrationv1.MutatingWebhook) {})
			if err != nil {
				return err
			}
			kind, data, options := patch(body)
			_, err = all.Patch(ctx, found.Name, kind, data, options)
			return err
		}},
		{Name: "have WebApps sent to another URL", try: func(ctx context.Context, p *prisoner) error {
			all := p.AdmissionregistrationV1().ValidatingWebhookConfigurations()
			found, err := all.Get(ctx, webhook.ConfigurationName, metav1.GetOptions{})
			if err != nil {
				return err
			}
			body, err := changed(found.Webhooks, func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.URL = ptr.To(elsewhere) })
			if err != nil {
				return err
			}
			kind, data, options := patch(body)
			_, err = all.Patch(ctx, found.Name, kind, data, options)
			return err
		}},
		{Name: "have WebApps converted elsewhere", try: changingDefinition(types.MergePatchType,
			`{"spec":{"conversion":{"webhook":{"clientConfig":{"url":"`+elsewhere+`"}}}}}`)},
		{Name: "stop serving the version by which parts of WebApps name their owners", try: changingDefinition(types.JSONPatchType,
			`[{"op":"test","path":"/spec/versions/0/name","value":"v1"},{"op":"replace","path":"/spec/versions/0/served","value":false}]`)},
		{Name: "forget the URL, to set another one later", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"webhooks":[]}`)
			_, err := p.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, webhook.ConfigurationName, kind, data, options)
			return err
		}},
		{Name: "change another's webhook configuration", try: func(ctx context.Context, p *prisoner) error {
			kind, data, options := patch(`{"webhooks":[]}`)
			_, err := p.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, "others", kind, data, options)
			return err
		}},
		{Name: "delete another's webhook configuration", try: func(ctx context.Context, p *prisoner) error {
			return p.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "others", metav1.DeleteOptions{DryRun: dry})
		}},
	}
}

// changingDefinition changes the definition of WebApps.
func changingDefinition(kind types.PatchType, body string) func(context.Context, *prisoner) error {
	return func(ctx context.Context, p *prisoner) error {
		const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd.Name
		return p.Discovery().RESTClient().Patch(kind).AbsPath(definition).Param("dryRun", metav1.DryRunAll).Body([]byte(body)).Do(ctx).Error()
	}
}

// changed is the webhooks of a configuration of the hub's, with a change of the first.
func changed[W any](webhooks []W, change func(*W)) (string, error) {
	if len(webhooks) == 0 {
		return "", fmt.Errorf("webhook configuration %s: no hub has written %T yet", webhook.ConfigurationName, webhooks)
	}
	change(&webhooks[0])
	body, err := json.Marshal(map[string]any{"webhooks": webhooks})
	return string(body), err
}
