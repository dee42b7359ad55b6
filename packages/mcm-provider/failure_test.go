package mcmprovider

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"machinist.example/mcm-provider/contract"
)

func TestFailures(t *testing.T) {
	notFound := status.Error(codes.NotFound, "no such VM")
	for name, one := range map[string]struct {
		err     error
		code    contract.Code
		message string
	}{
		"a status is taken as it is":                    {status.Error(codes.ResourceExhausted, "quota"), contract.Code_CODE_RESOURCE_EXHAUSTED, "quota"},
		"NotFound of the provider is believed":          {notFound, contract.Code_CODE_NOT_FOUND, "no such VM"},
		"NotFound in another error is not":              {fmt.Errorf("reading the subnet: %w", notFound), contract.Code_CODE_UNKNOWN, "reading the subnet: no such VM"},
		"NotFound in a text is not":                     {errors.New(notFound.Error()), contract.Code_CODE_UNKNOWN, notFound.Error()},
		"another code in another error is":              {fmt.Errorf("two: %w", status.Error(codes.Unavailable, "away")), contract.Code_CODE_UNAVAILABLE, "two: away"},
		"a text of several lines loses its frame":       {fmt.Errorf("two: %w", status.Error(codes.Internal, "a\nb")), contract.Code_CODE_INTERNAL, "two: a\nb"},
		"a status in the text of one loses its frame":   {status.Error(codes.Internal, status.Error(codes.Internal, "no region").Error()), contract.Code_CODE_INTERNAL, "no region"},
		"an error that says OK is one":                  {status.Error(codes.OK, "odd"), contract.Code_CODE_UNKNOWN, "odd"},
		"a code that the contract lacks is Unknown":     {status.Error(codes.Code(99), "odd"), contract.Code_CODE_UNKNOWN, "odd"},
		"Uninitialized has its own number":              {status.Error(codes.Uninitialized, "wait"), contract.Code_CODE_UNINITIALIZED, "wait"},
		"an error without a code is Unknown":            {errors.New("EOF"), contract.Code_CODE_UNKNOWN, "EOF"},
		"several VMs are told to the manager unchanged": {status.Error(codes.OutOfRange, "two"), contract.Code_CODE_OUT_OF_RANGE, "two"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failureOf(one.err); got.Code != one.code || got.Message != one.message {
				t.Errorf("%s %q", got.Code, got.Message)
			}
		})
	}
	if failureOf(nil) != nil {
		t.Error("success is a failure")
	}
}

func TestWhatIsMissingIsNotTheVM(t *testing.T) {
	missing := failureOf(status.Error(codes.NotFound, "image not found"))
	for name, got := range map[string]*Failure{"of a creation": whenCreating(missing, false), "of a list": notTheVM(missing)} {
		if got.Code != contract.Code_CODE_FAILED_PRECONDITION || got.Message != "image not found" {
			t.Errorf("%s: %s %q", name, got.Code, got.Message)
		}
	}
	waiting := failureOf(status.Error(codes.Uninitialized, "wait"))
	if got := whenCreating(waiting, true); got.Code != contract.Code_CODE_UNINITIALIZED {
		t.Errorf("a VM that waits for its initialization: %s", got.Code)
	}
	if got := whenCreating(waiting, false); got.Code != contract.Code_CODE_INTERNAL {
		t.Errorf("one without an ID: %s", got.Code)
	}
}
