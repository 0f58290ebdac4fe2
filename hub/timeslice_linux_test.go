package hub

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestEveryThreadHasShortTimeSlicesAndItsOldPriority(t *testing.T) {
	g := NewWithT(t)
	before, err := unix.SchedGetAttr(0, 0)
	if err == nil {
		err = shortenTimeSlices()
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("the kernel, or what stands before it, refuses: %v", err)
	}
	g.Expect(err).NotTo(HaveOccurred())

	// One that is started afterwards is among them.
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(started)
		<-done
	}()
	<-started
	defer close(done)
	threads, err := os.ReadDir("/proc/self/task")
	g.Expect(err).NotTo(HaveOccurred())
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		g.Expect(err).NotTo(HaveOccurred())
		now, err := unix.SchedGetAttr(id, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now.Nice).To(Equal(before.Nice))
		g.Expect(now.Policy).To(Equal(before.Policy))
		if before.Runtime == 0 {
			t.Log("this kernel has no time slices of a thread's own, which is before 6.12")
			continue
		}
		g.Expect(now.Runtime).To(BeEquivalentTo(timeSlice))
	}
}
