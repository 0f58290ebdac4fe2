package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// quiet are checks whose lines go into a buffer.
func quiet() (*checks, *bytes.Buffer) {
	var out bytes.Buffer
	return &checks{demo: &demo{screen: &screen{out: &out}, begun: time.Now(), ports: usual}, ran: map[string]bool{}}, &out
}

func TestEveryCheckHasOneLineAndIsCounted(t *testing.T) {
	g := NewWithT(t)
	c, out := quiet()
	c.check(t.Context(), "one", func(context.Context) (string, error) { return "3 of 3", nil })
	c.check(t.Context(), "two", func(context.Context) (string, error) { return "", errors.New("2 of 3") })
	c.check(t.Context(), "three", func(context.Context) (string, error) { return "", skip("no curl") })
	g.Expect(out.String()).To(Equal("ok   one: 3 of 3\nFAIL two: 2 of 3\nskip three: no curl\n"))
	g.Expect(c.summary()).To(HavePrefix("1 skipped, 1 passed, 1 failed"))
}

func TestAPrintedLineThatNothingRanFailsTheChecks(t *testing.T) {
	g := NewWithT(t)
	c, out := quiet()
	for _, l := range lines(c.ports)[1:] {
		c.ran[l.name] = true
	}
	c.everyLine(t.Context())
	g.Expect(out.String()).To(ContainSubstring("FAIL every printed line"))
	g.Expect(out.String()).To(ContainSubstring(lines(c.ports)[0].command))
	c.ran[lines(c.ports)[0].name] = true
	c.everyLine(t.Context())
	g.Expect(c.passed).To(Equal(1))
}

func TestSlotsMustBeThereAndDistinct(t *testing.T) {
	g := NewWithT(t)
	const head = "NAME   READY   SLOT   NODE\n"
	g.Expect(slotsShown(head+"web-a  1/1     1      n\nweb-b  1/1     0      n\n", 2)).To(Equal("0 to 1"))
	for _, bad := range []string{
		"NAME   READY   NODE\nweb-a  1/1     n\n",
		head + "web-a  1/1     0      n\nweb-b  1/1     0      n\n",
		head + "web-a  1/1     0      n\nweb-b  1/1            n\n",
		head + "web-a  1/1     0      n\nweb-b  1/1     2      n\n",
		head + "web-a  1/1     0      n\n",
	} {
		_, err := slotsShown(bad, 2)
		g.Expect(err).To(HaveOccurred(), bad)
	}
}

func TestAListThatLacksAWorkloadIsNotTheList(t *testing.T) {
	g := NewWithT(t)
	const one = `{"cluster":"prod-us","namespace":"shop","name":"search"}`
	const two = `{"cluster":"prod-us","namespace":"shop","name":"web"}`
	const three = `{"cluster":"prod-us","namespace":"shop","name":"cache"}`
	_, err := listedWorkloads(`{"workloads":[`+one+`,`+two+`,`+three+`]}`, "prod-us")
	g.Expect(err).NotTo(HaveOccurred())
	for _, bad := range []string{`{"workloads":[` + one + `,` + two + `]}`, `{"code":16,"message":"no token"}`, `not json`} {
		_, err := listedWorkloads(bad, "prod-us")
		g.Expect(err).To(HaveOccurred(), bad)
	}
}

func TestTheTokenIsTakenOutOfTheLineThatIsToBeTurnedAway(t *testing.T) {
	line := bearerHeader.ReplaceAllString(lineNamed(usual, "curl").command, "X")
	NewWithT(t).Expect(line).To(And(ContainSubstring(" X "), Not(ContainSubstring(tokenFile)), Not(ContainSubstring("Bearer"))))
}

func TestCurlAsksNoProxyForLoopback(t *testing.T) {
	g := NewWithT(t)
	g.Expect(noProxy(func(string) string { return "" })).To(BeEmpty())
	g.Expect(noProxy(func(name string) string { return map[string]string{"https_proxy": "http://proxy:3128"}[name] })).To(Equal(" --noproxy '*'"))
}

func TestAnExplanationHasStatePlanAndReplicas(t *testing.T) {
	g := NewWithT(t)
	const whole = "shop/deployment/web of prod-eu: Converged\n  Of 20 replicas, 14 belong on spot and 6 on-demand.\n\nPOD\nweb-a\n"
	g.Expect(explained(whole)).To(Equal("shop/deployment/web of prod-eu: Converged"))
	for _, bad := range []string{"", "shop/deployment/cart of prod-eu: Converged\n", strings.ReplaceAll(whole, "belong on spot", ""), strings.ReplaceAll(whole, "web-a", "")} {
		_, err := explained(bad)
		g.Expect(err).To(HaveOccurred(), bad)
	}
}
