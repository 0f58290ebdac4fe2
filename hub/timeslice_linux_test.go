package hub

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestEveryThreadHasShortTimeSlicesAndItsOldPriority(t *testing.T) {
	g := NewWithT(t)
	before, err := unix.SchedGetAttr(0, 0)
	g.Expect(err).NotTo(HaveOccurred())
	want := timeSlice
	if before.Runtime == 0 {
		t.Log("this kernel knows no time slices of a thread's own, which came with 6.12")
		want = 0
	}

	g.Expect(ShortenTimeSlices()).To(Succeed())

	// More goroutines that hold a thread each than there are threads, so that some are started afterwards.
	threads, err := os.ReadDir("/proc/self/task")
	g.Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	defer close(done)
	var held sync.WaitGroup
	for range len(threads) + 1 {
		held.Add(1)
		go func() {
			runtime.LockOSThread()
			held.Done()
			<-done
		}()
	}
	held.Wait()
	now, err := os.ReadDir("/proc/self/task")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(now)).To(BeNumerically(">", len(threads)))
	for _, thread := range now {
		id, err := strconv.Atoi(thread.Name())
		g.Expect(err).NotTo(HaveOccurred())
		attributes, err := unix.SchedGetAttr(id, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(attributes.Nice).To(Equal(before.Nice))
		g.Expect(attributes.Policy).To(Equal(before.Policy))
		g.Expect(time.Duration(attributes.Runtime)).To(Equal(want))
	}
}
