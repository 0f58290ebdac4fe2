package clusters

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
)

// The errors are those that a member's client gives, whatever it wraps them in.
func TestAnErrorTellsWhetherTheRequestWentOut(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*transportOptions)
		prepare func(api *fakeAPI, o transportOptions)
		notSent bool
	}{
		"the fence is shut": {notSent: true, edit: func(o *transportOptions) {
			o.fence = FenceFunc(func(string) error { return errors.New("not ours") })
		}},
		"the breaker is open":      {notSent: true, prepare: func(_ *fakeAPI, o transportOptions) { o.breaker.open() }},
		"the budget has no room":   {notSent: true, edit: func(o *transportOptions) { o.qps, o.burst = 0.001, 0 }},
		"nobody listens":           {notSent: true, prepare: func(api *fakeAPI, _ transportOptions) { _ = api.Listener.Close() }},
		"the answer does not come": {prepare: func(api *fakeAPI, _ transportOptions) { api.fault("/slow", hangs) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := newFakeAPI(t, "a")
			w, o := ways(t, api, func(o *transportOptions) {
				if test.edit != nil {
					test.edit(o)
				}
			})
			if test.prepare != nil {
				test.prepare(api, o)
			}
			_, err := ask(w.client, "POST", api.URL+"/slow")
			g.Expect(err).To(HaveOccurred())
			g.Expect(NotSent(err)).To(Equal(test.notSent), "error: %v", err)
		})
	}
}
