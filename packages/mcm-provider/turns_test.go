package mcmprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"machinist.example/mcm-provider/contract"
)

func codeIn(err error) contract.Code {
	failure := failureOf(err)
	if failure == nil {
		return contract.Code_CODE_OK
	}
	return failure.Code
}

func TestACallThatIgnoresItsContextHoldsTheTurnOfItsMachineAlone(t *testing.T) {
	all := &turns{}
	release, err := all.take(context.Background(), "a", "CreateMachine")
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()

	_, refused := all.take(over, "a", "DeleteMachine")
	if codeIn(refused) != contract.Code_CODE_ABORTED || !strings.Contains(refused.Error(), "CreateMachine has been running") {
		t.Errorf("the second call of machine a: %v", refused)
	}
	other, err := all.take(context.Background(), "b", "CreateMachine")
	if err != nil {
		t.Errorf("a call of machine b: %v", err)
	}
	other()
	release()
	again, err := all.take(context.Background(), "a", "DeleteMachine")
	if err != nil {
		t.Errorf("the next call of machine a: %v", err)
	}
	again()
	if len(all.holders) > 0 {
		t.Errorf("turns that nobody wants are kept: %v", all.holders)
	}
}

func TestACallWhoseTimeHasPassedTakesNoTurnThatIsFree(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	all := &turns{}
	for range 100 { // which of the two is first is a matter of chance
		_, refused := all.take(over, "a", "DeleteMachine")
		if codeIn(refused) != contract.Code_CODE_ABORTED || !strings.Contains(refused.Error(), "before its turn came") {
			t.Fatal(refused)
		}
	}
	if len(all.holders) > 0 {
		t.Errorf("turns that nobody wants are kept: %v", all.holders)
	}
}

func TestWhatIsMadeAfterItsCallerHasGoneIsReportedBeforeTheTurnEnds(t *testing.T) {
	steps := make(chan string, 4)
	returns := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	release := func() { steps <- "released" }
	late := func(value string, err error) { steps <- fmt.Sprint("late ", value, " ", err) }
	call := func(context.Context) (string, error) {
		<-returns
		return "made", nil
	}

	cancel()
	_, err := await(ctx, "CreateMachine", release, late, call)
	if codeIn(err) != contract.Code_CODE_ABORTED {
		t.Errorf("the caller who has gone gets %v", err)
	}
	close(returns)
	if first, second := <-steps, <-steps; first != "late made <nil>" || second != "released" {
		t.Errorf("%s, %s", first, second)
	}
}

func TestAnAnswerInTimeIsNotLate(t *testing.T) {
	late := func(string, error) { t.Error("an answer that was heard is late") }
	call := func(context.Context) (string, error) { return "made", nil }
	if value, err := await(context.Background(), "CreateMachine", func() {}, late, call); value != "made" || err != nil {
		t.Errorf("%s, %v", value, err)
	}
}

func TestAPanicIsAFailureOfItsCall(t *testing.T) {
	isReleased := make(chan struct{})
	call := func(context.Context) (string, error) { panic(errors.New("nil map")) }
	_, err := await(context.Background(), "CreateMachine", func() { close(isReleased) }, func(string, error) {}, call)
	if codeIn(err) != contract.Code_CODE_INTERNAL || err.Error() != "the provider panicked in CreateMachine: nil map" {
		t.Errorf("%v", err)
	}
	<-isReleased
}
