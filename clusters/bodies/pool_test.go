package bodies

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestABufferTakesWhatWasAskedForWithoutGrowing(t *testing.T) {
	g := NewWithT(t)
	var p Pool
	for _, size := range []int{0, 1, grain - 1, grain, grain + 1, 4 << 20} {
		b := p.Get(size)
		g.Expect(b.Len()).To(BeZero())
		g.Expect(b.Cap()).To(BeNumerically(">=", size))
		g.Expect(b.Cap()).To(BeNumerically("<", size+grain))
	}
}

func TestBodiesThatFollowEachOtherShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var p Pool
		first := p.Get(3 << 20)
		first.WriteString("old")
		p.Put(first)
		second := p.Get(1 << 20)
		g.Expect(second).To(BeIdenticalTo(first), "the larger one serves a smaller body")
		g.Expect(second.Len()).To(BeZero(), "nothing of the body before it is left")
		g.Expect(p.Get(1<<20)).NotTo(BeIdenticalTo(second), "a buffer is lent once")
		p.Put(second)
		g.Expect(p.Get(3<<20 + 1)).NotTo(BeIdenticalTo(second))
	})
}

func TestTheSmallestBufferThatFitsIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var p Pool
		large, small := p.Get(4<<20), p.Get(1<<20)
		p.Put(large)
		p.Put(small)
		g.Expect(p.Get(1 << 20)).To(BeIdenticalTo(small))
		g.Expect(p.Get(1 << 20)).To(BeIdenticalTo(large))
	})
}

func TestNoMoreThanTheBoundIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var p Pool
		small, large := p.Get(4<<20), p.Get(keptBytes)
		p.Put(small)
		p.Put(large)
		g.Expect(p.size).To(Equal(large.Cap()), "the large one serves bodies of both sizes")
		g.Expect(p.kept).To(HaveLen(1))
		p.Put(p.Get(keptBytes + 1))
		p.Put(p.Get(1))
		g.Expect(p.size).To(Equal(large.Cap()), "what is larger than the bound is not kept, nor what is small")
	})
}

func TestWhatNobodyUsesIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var p Pool
		b := p.Get(1 << 20)
		p.Put(b)
		time.Sleep(keptFor - time.Millisecond)
		b = p.Get(1 << 20)
		p.Put(b)
		time.Sleep(keptFor - time.Millisecond)
		g.Expect(kept(&p)).To(Equal(b.Cap()), "its time begins with the last use")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		g.Expect(kept(&p)).To(BeZero())
	})
}

// kept is how many bytes a pool keeps.
func kept(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

func TestBuffersAreLentToOneAtATime(t *testing.T) {
	var p Pool
	var running sync.WaitGroup
	for worker := range 8 {
		running.Go(func() {
			g := NewWithT(t)
			for range 200 {
				b := p.Get(grain)
				for range 64 {
					b.WriteByte(byte(worker))
				}
				for _, written := range b.Bytes() {
					g.Expect(written).To(Equal(byte(worker)))
				}
				p.Put(b)
			}
		})
	}
	running.Wait()
}
