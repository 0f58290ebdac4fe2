package hub

import (
	"testing"
	"testing/fstest"

	. "github.com/onsi/gomega"
)

func TestTheMemoryLimitIsTheContainersLessATenth(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for _, c := range []struct {
		name, text string
		want       int64
	}{
		{v2, "536870912\n", 483183819}, {v2, "max\n", 0}, {v1, "1000\n", 900}, {v1, "9223372036854771712\n", 0}, {v2, "", 0}, {"other", "5", 0},
	} {
		g := NewWithT(t)
		limit, ok := memoryLimit(fstest.MapFS{c.name: {Data: []byte(c.text)}})
		g.Expect(ok).To(Equal(c.want > 0), "%+v", c)
		g.Expect(limit).To(Equal(c.want), "%+v", c)
	}
}
