package kube_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestClustersStartSideBySideAndAreNotTheSame(t *testing.T) {
	g := NewWithT(t)
	first, second := fleet(t)
	g.Expect(first.URL()).NotTo(Equal(second.URL()))
	uids := map[string]bool{}
	for _, c := range []*kube.Cluster{first, second} {
		clientset, err := kubernetes.NewForConfig(c.Config())
		g.Expect(err).NotTo(HaveOccurred())
		version, err := clientset.ServerVersion()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(version.GitVersion).To(Equal("v1.36.1"))
		system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
		g.Expect(exists(t, c, system)).To(BeTrue())
		uids[string(system.UID)] = true
		g.Expect(c.Pids()).To(HaveLen(5))
	}
	g.Expect(uids).To(HaveLen(2))
}

func TestAMinimalClusterHasNodesAndObjectsAndNothingThatActs(t *testing.T) {
	g := NewWithT(t)
	var log bytes.Buffer
	dir := filepath.Join(t.TempDir(), "hub")
	c := kube.New(t, kube.Options{Name: "hub", Dir: dir, Minimal: true, Log: &log})
	g.Expect(c.Pids()).To(HaveLen(2))
	g.Expect(c.Dir()).To(Equal(dir))

	names, err := c.AddNodes(t.Context(), 1, kube.NodeSpec{
		Capacity: kube.Spot, Taints: []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	g.Expect(exists(t, c, node)).To(BeTrue())
	g.Expect(node.Spec.Taints).To(HaveLen(1))
	g.Expect(node.Status.Conditions).To(ContainElement(HaveField("Status", corev1.ConditionTrue)))

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "sample"}}},
	}
	g.Expect(c.Client().Create(t.Context(), pod)).To(Succeed())

	_, err = kube.Start(t.Context(), kube.Options{Name: "second", Dir: dir, Minimal: true})
	g.Expect(err).To(MatchError(ContainSubstring("already holds a cluster's state")))
	g.Expect(exists(t, c, pod)).To(BeTrue(), "a refused start must not touch the cluster that lives there")

	g.Expect(c.Stop()).To(Succeed())
	g.Expect(c.Stop()).To(Succeed(), "stopping again is no error")
	g.Expect(c.Pids()).To(BeEmpty())
	g.Expect(filepath.Join(dir, "logs", "kube-apiserver.log")).To(BeARegularFile(), "a folder that was named is left")
	g.Expect(log.String()).To(ContainSubstring("cluster hub: API server ready"))
	g.Expect(log.String()).NotTo(ContainSubstring("has ended"), "what we end ourselves is not reported")
}

func TestAStartThatFailsSaysWhyAndLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	_, err := kube.Start(t.Context(), kube.Options{Name: "wrong", Minimal: true, APIServerArgs: []string{"--no-such-flag"}})
	g.Expect(err).To(MatchError(And(ContainSubstring("start cluster wrong"), ContainSubstring("kube-apiserver has ended"), ContainSubstring("no-such-flag"))))
	left, err := filepath.Glob(filepath.Join(temp, "*", "*"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(BeEmpty())

	_, err = kube.Start(t.Context(), kube.Options{Name: "Not A Label"})
	g.Expect(err).To(MatchError(ContainSubstring(`cluster name "Not A Label"`)))
	_, err = kube.Start(t.Context(), kube.Options{PodStop: -1})
	g.Expect(err).To(MatchError(ContainSubstring("must not be negative")))
}

func TestAMissingTestbedSaysWhatToRun(t *testing.T) {
	g := NewWithT(t)
	root := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/plimsoll-dev/plimsoll\n"), 0o600)).To(Succeed())
	t.Chdir(root)
	_, err := kube.Start(t.Context(), kube.Options{})
	g.Expect(err).To(MatchError(And(ContainSubstring("etcd is missing"), ContainSubstring("make testbed"))))

	t.Chdir(t.TempDir())
	_, err = kube.BinDir()
	g.Expect(err).To(MatchError(ContainSubstring("not inside a checkout")))
}

func TestTheLogsOfAClusterAreKept(t *testing.T) {
	g := NewWithT(t)
	c, _ := fleet(t)
	where, err := c.KeepLogs("kept logs/of " + t.Name())
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(where)) })
	for _, name := range []string{"etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "kube-scheduler.log", "kwok.log", "audit.log"} {
		g.Expect(filepath.Join(where, name)).To(BeARegularFile())
	}
	g.Expect(filepath.Base(filepath.Dir(where))).To(Equal("kept_logs_of_TestTheLogsOfAClusterAreKept"))
}
