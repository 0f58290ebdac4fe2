package v1_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

const bomb = `{"containers":[{"name":"a","image":"a:1","resources":{"requests":{"cpu":"1e-2147483647","memory":1e2147483647},"limits":{"cpu":" 1e-2147483647 "}}}]}`

func TestAQuantityThatNoComputerShouldComputeIsBoundedWhereverItStands(t *testing.T) {
	g := NewWithT(t)
	var app, carried v1.WebApp
	g.Expect(json.Unmarshal([]byte(`{"spec":`+bomb+`}`), &app)).To(Succeed())
	requests := app.Spec.Containers[0].Resources.Requests
	list := requests.Kubernetes()
	g.Expect(list.Cpu().String()).To(Equal("1e-9"))
	limits := app.Spec.Containers[0].Resources.Limits.Kubernetes()
	g.Expect(limits.Cpu().String()).To(Equal("1e-9"), "blanks are no part of it")
	memory := requests["memory"]
	g.Expect(memory.String()).To(Equal("1e0000000099"))
	older := metav1.ObjectMeta{Annotations: map[string]string{v1.CarryAnnotation: `{"spec":` + bomb + `}`}}
	g.Expect(v1.Uncarry(&older, &carried)).To(Succeed())
	g.Expect(carried.Spec).To(Equal(app.Spec))
}

func TestAQuantityIsWrittenAsItWasRead(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{`"100m"`, `"2Gi"`, `"0"`} {
		var q v1.Quantity
		g.Expect(json.Unmarshal([]byte(text), &q)).To(Succeed())
		again, err := json.Marshal(q)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(again)).To(Equal(text))
	}
}
