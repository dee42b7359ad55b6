package mcmprovider

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"machinist.example/mcm-provider/contract"
)

// turns gives each machine one call at a time, also if the provider ignores that a call was given up: two creations side by side would make
// two VMs.
type turns struct {
	mu      sync.Mutex
	holders map[string]*turn
}

type turn struct {
	// Holds one element while a call runs.
	taken chan struct{}
	// Calls that run or wait; the last one forgets the turn.
	interested int
	// Of the call that runs; empty if none does.
	method string
	since  time.Time
}

// take waits until no other call for the machine, or whatever the turn is about, runs. It returns Aborted when the time of the call has
// passed before that.
func (t *turns) take(ctx context.Context, machine, method string) (release func(), _ error) {
	mine := t.enter(machine)
	select {
	case mine.taken <- struct{}{}:
		// Where both happen at once, select chooses by chance.
		if ctx.Err() != nil {
			defer t.end(machine, mine)
			return nil, tooLate()
		}
		t.mu.Lock()
		mine.method, mine.since = method, time.Now()
		t.mu.Unlock()
		return func() { t.end(machine, mine) }, nil
	case <-ctx.Done():
		defer t.leave(machine, mine)
		t.mu.Lock()
		defer t.mu.Unlock()
		if mine.method == "" {
			return nil, tooLate()
		}
		return nil, failed(contract.Code_CODE_ABORTED,
			"%s has been running for %s and must end first; the provider has not returned from it",
			mine.method, time.Since(mine.since).Round(time.Second))
	}
}

func (t *turns) enter(machine string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holders == nil {
		t.holders = map[string]*turn{}
	}
	mine, isHeld := t.holders[machine]
	if !isHeld {
		mine = &turn{taken: make(chan struct{}, 1)}
		t.holders[machine] = mine
	}
	mine.interested++
	return mine
}

func (t *turns) end(machine string, mine *turn) {
	t.mu.Lock()
	mine.method = ""
	t.mu.Unlock()
	<-mine.taken
	t.leave(machine, mine)
}

func tooLate() *Failure {
	return failed(contract.Code_CODE_ABORTED, "the time of the call has passed before its turn came")
}

func (t *turns) leave(machine string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.interested--; mine.interested == 0 {
		delete(t.holders, machine)
	}
}

// await runs a call of the provider and returns its result, or Aborted when the time of the call has passed. The call then goes on until the
// provider returns; what it returns goes to `late`, and only after that the turn ends. A panic is a failure of this call, and ends no other
// one.
func await[T any](
	ctx context.Context, method string, release func(), late func(T, error), call func(context.Context) (T, error),
) (T, error) {
	type result struct {
		value T
		err   error
	}
	ended := make(chan result, 1)
	// Set by whoever comes first: the provider with its result, or the caller who leaves.
	var isSettled atomic.Bool
	go func() {
		defer release()
		value, err := guarded(ctx, method, call)
		if isSettled.CompareAndSwap(false, true) {
			ended <- result{value, err}
		} else {
			late(value, err)
		}
	}()
	select {
	case got := <-ended:
		return got.value, got.err
	case <-ctx.Done():
		if !isSettled.CompareAndSwap(false, true) {
			got := <-ended
			return got.value, got.err
		}
		var none T
		return none, cutShort(failed(contract.Code_CODE_ABORTED,
			"the provider did not return from %s in time; what it has begun is found by the next call", method))
	}
}

func guarded[T any](ctx context.Context, method string, call func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			slog.Error("the provider panicked", "method", method, "err", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = failed(contract.Code_CODE_INTERNAL, "the provider panicked in %s: %v", method, cause)
		}
	}()
	return call(ctx)
}
