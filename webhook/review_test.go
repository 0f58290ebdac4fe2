package webhook

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/admission"
)

// asGoReads has the fields that decodeReview takes, for encoding/json to fill in.
type asGoReads struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    struct {
		UID string `json:"uid"`
		GR  struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
		SubResource string `json:"subResource"`
		Namespace   string `json:"namespace"`
		Operation   string `json:"operation"`
		DryRun      *bool  `json:"dryRun"`
		Object      struct {
			Metadata struct {
				Name            string            `json:"name"`
				Labels          map[string]string `json:"labels"`
				Annotations     map[string]string `json:"annotations"`
				OwnerReferences []struct {
					APIVersion string `json:"apiVersion"`
					Kind       string `json:"kind"`
					Name       string `json:"name"`
					UID        string `json:"uid"`
					Controller *bool  `json:"controller"`
				} `json:"ownerReferences"`
			} `json:"metadata"`
			Spec struct {
				NodeSelector map[string]string `json:"nodeSelector"`
				Affinity     *struct {
					NodeAffinity *struct {
						Required *struct {
							Terms []struct {
								MatchExpressions []requirementAsGoReads `json:"matchExpressions"`
								MatchFields      []requirementAsGoReads `json:"matchFields"`
							} `json:"nodeSelectorTerms"`
						} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
					} `json:"nodeAffinity"`
				} `json:"affinity"`
				Tolerations []struct {
					Key      string `json:"key"`
					Operator string `json:"operator"`
					Value    string `json:"value"`
					Effect   string `json:"effect"`
				} `json:"tolerations"`
				Spreads []struct {
					Key      string `json:"topologyKey"`
					When     string `json:"whenUnsatisfiable"`
					Affinity string `json:"nodeAffinityPolicy"`
					Taints   string `json:"nodeTaintsPolicy"`
				} `json:"topologySpreadConstraints"`
			} `json:"spec"`
		} `json:"object"`
	} `json:"request"`
}

type requirementAsGoReads struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// orNil is the map, nil without entries.
func orNil(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// readByGo is decodeReview by way of encoding/json, in the variant of the API server: exact keys, nothing twice.
func readByGo(body []byte) (review, error) {
	var in asGoReads
	twice, err := kjson.UnmarshalStrict(body, &in, kjson.DisallowDuplicateFields)
	if err != nil {
		return review{}, err
	}
	if len(twice) > 0 {
		return review{}, twice[0]
	}
	meta, spec := in.Request.Object.Metadata, in.Request.Object.Spec
	r := review{
		apiVersion: in.APIVersion, kind: in.Kind, group: in.Request.GR.Group, resource: in.Request.GR.Resource,
		subResource: in.Request.SubResource, operation: in.Request.Operation,
		pod: spot.PodRequest{
			RequestUID: in.Request.UID, Namespace: in.Request.Namespace, Name: meta.Name, DryRun: in.Request.DryRun != nil && *in.Request.DryRun,
			Incoming: admission.Incoming{Labels: orNil(meta.Labels), Annotations: orNil(meta.Annotations), NodeSelector: orNil(spec.NodeSelector)},
		},
	}
	if spec.Tolerations != nil {
		r.pod.Tolerations = []corev1.Toleration{}
	}
	for _, t := range spec.Tolerations {
		r.pod.Tolerations = append(r.pod.Tolerations, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator),
			Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	for _, c := range spec.Spreads {
		r.pod.Spreads = append(r.pod.Spreads, admission.Spread{Key: c.Key, Must: c.When == "DoNotSchedule",
			Affinity: corev1.NodeInclusionPolicy(c.Affinity), Taints: corev1.NodeInclusionPolicy(c.Taints)})
	}
	for _, owner := range meta.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			r.pod.Owner = spot.OwnerRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
			r.pod.ReplicaSet = owner.Kind == "ReplicaSet"
			break
		}
	}
	r.pod.Affinity = spec.Affinity != nil
	r.pod.NodeAffinity = r.pod.Affinity && spec.Affinity.NodeAffinity != nil
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil && spec.Affinity.NodeAffinity.Required != nil {
		r.pod.Required = &corev1.NodeSelector{}
		for _, term := range spec.Affinity.NodeAffinity.Required.Terms {
			r.pod.Required.NodeSelectorTerms = append(r.pod.Required.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchExpressions: requirementsOf(term.MatchExpressions), MatchFields: requirementsOf(term.MatchFields)})
		}
	}
	return r, nil
}

func requirementsOf(in []requirementAsGoReads) (out []corev1.NodeSelectorRequirement) {
	for _, r := range in {
		out = append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values})
	}
	return out
}

// sameReview distinguishes nil from empty for what patches are made to: the path of an empty list exists.
var sameReview = cmp.Options{cmp.AllowUnexported(review{}), cmpopts.IgnoreFields(review{}, "spare"),
	cmp.FilterValues(func(a, b []corev1.NodeSelectorRequirement) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b []corev1.NodeSelectorTerm) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
	cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())}

// FuzzReview compares the scanner with encoding/json: the same facts, or both refuse.
func FuzzReview(f *testing.F) {
	f.Add(reviewOf("192a64db", `,"dryRun":true,"object":{"metadata":{"name":"a-0","labels":{"a":"b"},"annotations":{"c":"\"ö\\n"},`+
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"a","uid":"1","controller":true}]},`+
		`"spec":{"nodeSelector":{"d":"e"},"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"j","whenUnsatisfiable":"DoNotSchedule","nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore"}],"tolerations":[{"key":"f","operator":"Equal","value":"g","effect":"NoSchedule"}],"affinity":{"nodeAffinity":`+
		`{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"h","operator":"In","values":["i"]}],"matchFields":[]}]}}}}}`))
	for _, seed := range oddReviews {
		if len(seed) < 1<<10 { // the comparison is slow for what is nested deeply
			f.Add([]byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		compareWithGo(t, body)
	})
}

func compareWithGo(t testing.TB, body []byte) {
	t.Helper()
	got, err := decodeReview(body)
	want, wantErr := readByGo(body)
	if wantErr == nil {
		compareFiltered(t, body, want)
	}
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("%.2000q\nthe scanner says %v, encoding/json says %v", body, err, wantErr)
	}
	if diff := cmp.Diff(want, got, sameReview); diff != "" {
		t.Fatalf("%.2000q\nencoding/json reads -, the scanner reads +:\n%s", body, diff)
	}
}

// compareFiltered checks that a filter takes out what it says, and nothing else. The review is used a second time.
func compareFiltered(t testing.TB, body []byte, want review) {
	t.Helper()
	isShort := func(key string) bool { return len(key) <= 1 }
	want.pod.Labels, want.pod.MoreLabels = filtered(want.pod.Labels, isShort)
	want.pod.Annotations, want.pod.MoreAnnotations = filtered(want.pod.Annotations, isShort)
	var got review
	for range 2 {
		if err := got.decode(body, func(key []byte) bool { return isShort(string(key)) }); err != nil {
			t.Fatalf("%.2000q\nwithout a filter it is read, with one the scanner says %v", body, err)
		}
		if diff := cmp.Diff(want, got, sameReview); diff != "" {
			t.Fatalf("%.2000q\nfiltered afterwards -, filtered by the scanner +:\n%s", body, diff)
		}
	}
}

func filtered(all map[string]string, keep func(key string) bool) (kept map[string]string, more bool) {
	for key, value := range all {
		if !keep(key) {
			more = true
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = value
	}
	return kept, more
}

// decodeReview reads a review into memory of its own, with everything that can be read.
func decodeReview(body []byte) (review, error) {
	var r review
	err := r.decode(body, nil)
	return r, err
}

// oddReviews are what a careless reader of JSON gets wrong.
var oddReviews = []string{
	`{}`, `null`, ` {} `, `[]`, `{}x`, `{} {}`, ``, ` `, `"`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{,}`, `[1,]`, `{"a":[,]}`, `{"a":1 "b":2}`,
	`{"request":null}`, `{"request":{"uid":null,"dryRun":null,"object":null}}`, `{"request":[]}`, `{"request":{"uid":5}}`, `{"request":{"uid":tru}}`,
	`{"request":{"dryRun":"true"}}`, `{"request":{"dryRun":true}}`, `{"request":{"dryRun":false,"dryRun":true}}`, `{"request":{"dryRun":1e5}}`,
	`{"request":{"uid":"a\u0041\ud83d\ude00\ud800\n\/\""}}`, `{"request":{"uid":"\x01"}}`, "{\"request\":{\"uid\":\"\xff\xfe\"}}", "{\"a\":\"\x1f\"}", `{"a":"\q"}`, `{"a":"\u12g4"}`,
	`{"request":{"\u0075id":"escaped key"}}`, `{"Request":{"UID":"other case"}}`, `{"request":{"uid":"1","uid":"2"}}`, `{"a":1,"a":2}`,
	`{"n":[0,-0,1.5,-1.5e+10,1E-5,01]}`, `{"n":[0,-0,1.5,-1.5e+10,1E-5]}`, `{"n":-}`, `{"n":1.}`, `{"n":.5}`, `{"n":1e}`, `{"n":+1}`, `{"n":NaN}`,
	`{"request":{"object":{"metadata":{"labels":{"a":null,"b":"c"},"annotations":{}}}}}`, `{"request":{"object":{"metadata":{"labels":{"a":"b","\u0061":"c"}}}}}`,
	`{"request":{"object":{"metadata":{"labels":{"a":5}}}}}`, `{"request":{"object":{"metadata":{"labels":["a"]}}}}`,
	`{"request":{"object":{"metadata":{"ownerReferences":[null,{"controller":false,"uid":"1"},{"controller":true,"uid":"2"},{"controller":true,"uid":"3"}]}}}}`,
	`{"request":{"object":{"metadata":{"ownerReferences":{"controller":true}}}}}`, `{"request":{"object":{"metadata":{"ownerReferences":[{"controller":"true"}]}}}}`,
	`{"request":{"object":{"spec":{"tolerations":[{},null,5]}}}}`, `{"request":{"object":{"spec":{"tolerations":{}}}}}`,
	`{"request":{"object":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["b",null]}]},null]}}}}}}}`,
	`{"request":{"object":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}}}}}`,
	`{"request":{"object":{"spec":{"affinity":null}}}}`, `{"request":{"object":{"spec":{"affinity":{}}}}}`, `{"request":{"object":{"spec":{"affinity":[]}}}}`,
	`{"request":{"object":{"spec":{"affinity":{"podAffinity":{},"nodeAffinity":null}}}}}`, `{"request":{"object":{"spec":{"affinity":{"nodeAffinity":{}}}}}}`,
	`{"request":{"object":{"spec":{"affinity":{"nodeAffinity":nul}}}}}`, `{"request":{"object":{"spec":{"affinity":{"nodeAffinity":5}}}}}`,
	strings.Repeat(`{"a":`, 9999) + `1` + strings.Repeat(`}`, 9999),
	strings.Repeat(`[`, 10001) + strings.Repeat(`]`, 10001), `{"a":` + strings.Repeat(`[`, 10000) + strings.Repeat(`]`, 10000) + `}`,
	"\ufeff{}", "{\"a\":1}\x00", "\v{}", "{\"a\"\t:\r\n1}",
}

func TestOddReviewsAreReadLikeEncodingJSONReadsThem(t *testing.T) {
	for _, odd := range oddReviews {
		compareWithGo(t, []byte(odd))
	}
}

func TestATruncatedReviewIsRefusedWhereverItEnds(t *testing.T) {
	body := recordedReview(t)
	for end := range body {
		if _, err := decodeReview(body[:end]); err == nil {
			t.Fatalf("the first %d of %d bytes were taken for a review", end, len(body))
		}
	}
}

func TestOneFlippedByteIsReadLikeEncodingJSONReadsIt(t *testing.T) {
	body := recordedReview(t)
	for i := range body {
		flipped := append([]byte(nil), body...)
		flipped[i] ^= 1 << (i % 8)
		compareWithGo(t, flipped)
	}
}

func TestAReviewWithOtherValuesInsideIsReadLikeEncodingJSONReadsIt(t *testing.T) {
	recorded := recordedReview(t)
	rapid.Check(t, func(r *rapid.T) {
		var tree any
		if err := json.Unmarshal(recorded, &tree); err != nil {
			t.Fatal(err)
		}
		odd := rapid.Map(rapid.SampledFrom(oddValues), func(text string) (value any) {
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Fatal(err)
			}
			return value // a fresh one each time: the next change may go into it
		})
		for range rapid.IntRange(1, 3).Draw(r, "changes") {
			tree = replaceOne(r, tree, odd)
		}
		body, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		compareWithGo(t, body)
	})
}

var oddValues = []string{
	`null`, `true`, `false`, `0`, `-1.5e9`, `""`, `"ö\n"`, `[]`, `[null]`, `[""]`, `{}`, `{"a":null}`, `{"uid":"x","name":1}`,
	`[{"key":"k","values":[null,"v"],"controller":true}]`,
}

// replaceOne goes down the tree by chance and puts another value where it stops.
func replaceOne(r *rapid.T, at any, odd *rapid.Generator[any]) any {
	switch at := at.(type) {
	case map[string]any:
		if len(at) > 0 && rapid.IntRange(0, 9).Draw(r, "down") > 0 {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(at))).Draw(r, "key")
			at[key] = replaceOne(r, at[key], odd)
			return at
		}
	case []any:
		if len(at) > 0 && rapid.IntRange(0, 9).Draw(r, "down") > 0 {
			i := rapid.IntRange(0, len(at)-1).Draw(r, "item")
			at[i] = replaceOne(r, at[i], odd)
			return at
		}
	}
	return odd.Draw(r, "value")
}

// What the API server's own types read from a real call must be what we read.
func TestARecordedReviewGivesTheFactsOfThePod(t *testing.T) {
	body := recordedReview(t)
	var want admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := json.Unmarshal(want.Request.Object.Raw, &pod); err != nil {
		t.Fatal(err)
	}
	got, err := decodeReview(body)
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.GetControllerOf(&pod)
	for i := range pod.Spec.Tolerations {
		pod.Spec.Tolerations[i].TolerationSeconds = nil // changes nothing for placement
	}
	if diff := cmp.Diff(review{
		apiVersion: want.APIVersion, kind: want.Kind, group: want.Request.Resource.Group, resource: want.Request.Resource.Resource,
		operation: string(want.Request.Operation),
		pod: spot.PodRequest{
			RequestUID: string(want.Request.UID), Namespace: want.Request.Namespace, Name: pod.Name, DryRun: *want.Request.DryRun,
			Owner: spot.OwnerRef{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)},
			Incoming: admission.Incoming{Labels: pod.Labels, Annotations: pod.Annotations, NodeSelector: pod.Spec.NodeSelector,
				Affinity: true, NodeAffinity: true,
				Required:    pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
				Tolerations: pod.Spec.Tolerations, ReplicaSet: true},
		},
	}, got, sameReview); diff != "" {
		t.Fatalf("the API's types read -, the scanner reads +:\n%s", diff)
	}
}

func TestTheErrorOfABadReviewDoesNotQuoteIt(t *testing.T) {
	for _, body := range []string{`{"request":{"uid":{"canary-5f1b":1}}}`, `{"request":{"dryRun":"canary-5f1b"}}`, `{"canary-5f1b"`, `canary-5f1b`} {
		_, err := decodeReview([]byte(body))
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// recordedReview is a call that a real API server made for a pod of a real ReplicaSet controller.
func recordedReview(t testing.TB) []byte {
	t.Helper()
	body, err := os.ReadFile("testdata/review.json")
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func BenchmarkDecode(b *testing.B) {
	body := recordedReview(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var r review
	none := func([]byte) bool { return false }
	for b.Loop() {
		if err := r.decode(body, none); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeByEncodingJSON is what BenchmarkDecode has to beat to be worth having.
func BenchmarkDecodeByEncodingJSON(b *testing.B) {
	body := recordedReview(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readByGo(body); err != nil {
			b.Fatal(err)
		}
	}
}
