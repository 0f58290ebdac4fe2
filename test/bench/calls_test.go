package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

func placedAnswer(uid, capacity string, slot int) []byte {
	patch := fmt.Sprintf(`[{"op":"add","path":"/metadata/labels/plimsoll.dev~1slot","value":"%d"},`+
		`{"op":"add","path":"/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost","value":"%s"},`+
		`{"op":"add","path":"/metadata/annotations/plimsoll.dev~1reservation","value":"r"},`+
		`{"op":"add","path":"/spec/nodeSelector/karpenter.sh~1capacity-type","value":"%s"}]`, slot, policy.Mix{Floor: 1}.Cost(slot), capacity)
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s","allowed":true,"patchType":"JSONPatch","patch":"%s"}}`,
		uid, base64.StdEncoding.EncodeToString([]byte(patch)))
}

func uidOf(connection, number int) string {
	uid := make([]byte, uidLength)
	requestUID(uid, connection, number)
	return string(uid)
}

func TestOnlyAnswersWithTheRightSlotPatchPass(t *testing.T) {
	right := []answer{
		{owner: 0, connection: 1, number: 7, body: placedAnswer(uidOf(1, 7), "on-demand", 0)},
		{owner: 0, connection: 1, number: 8, body: placedAnswer(uidOf(1, 8), "spot", 2)},
		{owner: 1, connection: 2, number: 7, body: placedAnswer(uidOf(2, 7), "spot", 2)},
	}
	NewWithT(t).Expect(checkAnswers(right, 70, 1)).To(Succeed())

	for name, wrong := range map[string]answer{
		"another request's UID":    {connection: 1, number: 9, body: placedAnswer(uidOf(1, 8), "spot", 4)},
		"a slot that is given":     {connection: 1, number: 9, body: placedAnswer(uidOf(1, 9), "spot", 2)},
		"a slot on the wrong type": {connection: 1, number: 9, body: placedAnswer(uidOf(1, 9), "on-demand", 4)},
		"no capacity type":         {connection: 1, number: 9, body: placedAnswer(uidOf(1, 9), "", 4)},
		"no patch": {connection: 1, number: 9,
			body: []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"` + uidOf(1, 9) + `","allowed":true}}`)},
		"not JSON": {body: []byte("404 page not found")},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(checkAnswers(append(right[:3:3], wrong), 70, 1)).NotTo(Succeed())
		})
	}
}

func TestACallCarriesItsOwnersNamesAndAnotherUIDEachTime(t *testing.T) {
	g := NewWithT(t)
	request := "11111111-2222-3333-4444-555555555555"
	recorded := &recording{
		body:    []byte(`{"uid":"` + request + `","namespace":"record-x","generateName":"web-abc-","owner":{"name":"web-abc","uid":"u-1"}}`),
		request: request, namespace: "record-x", owner: "web-abc", ownerU: "u-1",
	}
	target, err := url.Parse("https://127.0.0.1:1/webhook/v1/members/a/t/pods")
	g.Expect(err).NotTo(HaveOccurred())
	c, err := newCall(target, recorded, 0, "shop", "checkout-1-abc", "u-2")
	g.Expect(err).NotTo(HaveOccurred())
	requestUID(c.bytes[c.uidAt:c.uidAt+uidLength], 3, 4)
	head, body, _ := strings.Cut(string(c.bytes), "\r\n\r\n")
	g.Expect(head).To(HavePrefix("POST /webhook/v1/members/a/t/pods HTTP/1.1\r\n"))
	g.Expect(head).To(ContainSubstring(fmt.Sprintf("Content-Length: %d", len(body))))
	g.Expect(body).To(Equal(`{"uid":"` + uidOf(3, 4) + `","namespace":"shop","generateName":"checkout-1-abc-","owner":{"name":"checkout-1-abc","uid":"u-2"}}`))
	g.Expect(uidOf(3, 4)).NotTo(Equal(uidOf(4, 3)))
}

func TestResponsesAreReadOneAfterTheOther(t *testing.T) {
	g := NewWithT(t)
	from := bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\r\ncontent-LENGTH: 2\r\nX: y\r\n\r\nabHTTP/1.1 503 Busy\r\n\r\n"))
	bodies := &shelf{keep: true}
	body, err := readResponse(from, bodies)
	g.Expect(err).NotTo(HaveOccurred())
	copy(bodies.room(2), "cd")
	g.Expect(string(body)).To(Equal("ab"), "what is kept is not overwritten")
	_, err = readResponse(from, bodies)
	g.Expect(err).To(MatchError(errNoResponse))
}
