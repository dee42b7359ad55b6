package mcmprovider

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"

	"machinist.example/mcm-provider/contract"
)

// Failure is what the field `failure` of a response says.
type Failure struct {
	Code    contract.Code
	Message string
	// A repeated call with the same machine, class and secret cannot succeed.
	Terminal     bool
	HighestToken uint64
	// The VM exists, and is that of another machine.
	isForeign bool
	// The time of the call has passed while the provider worked: what it has done by then is not known.
	isCutShort bool
}

func (f *Failure) Error() string { return f.Message }

func failed(code contract.Code, format string, arguments ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// failureOf says what an error of the provider means. Numbers and names of the codes are the same on both sides.
//
// NotFound makes the manager replace a machine and forget its VM. It is believed only if the provider returned a status with that code
// itself: an error around one says that something was not found, a subnet or an image perhaps, and so does a text that reads like one
// (the original's status.FromError parses texts).
func failureOf(err error) *Failure {
	var failure *Failure
	if err == nil || errors.As(err, &failure) {
		return failure
	}
	own, isOwn := err.(*status.Status) //nolint:errorlint // an error around it is another one
	wrapped := own
	if !isOwn && !errors.As(err, &wrapped) {
		return failed(contract.Code_CODE_UNKNOWN, "%s", err)
	}
	code := codeOf(wrapped.Code())
	if code == contract.Code_CODE_NOT_FOUND && !isOwn {
		code = contract.Code_CODE_UNKNOWN
	}
	if isOwn {
		return failed(code, "%s", plain(own.Message()))
	}
	return failed(code, "%s", plain(err.Error()))
}

// codeOf takes a code that the contract does not have, and an error that says OK, for Unknown.
func codeOf(code codes.Code) contract.Code {
	number := contract.Code(code) //nolint:gosec // codes are small
	if _, isKnown := contract.Code_name[int32(number)]; !isKnown || number == contract.Code_CODE_OK {
		return contract.Code_CODE_UNKNOWN
	}
	return number
}

// cutShort marks a failure of a call whose time had passed while the provider worked.
func cutShort(err error) *Failure {
	failure := failed(contract.Code_CODE_ABORTED, "the provider returned no provider ID")
	if given := failureOf(err); given != nil {
		*failure = *given
	}
	failure.isCutShort = true
	return failure
}

var machineCode = regexp.MustCompile(`(?s)machine codes error: code = \[[A-Za-z]+\] message = \[(.*)\]`)

// plain takes the frame of a status out of a text: `machine codes error: code = [Internal] message = [no such AMI]` is `no such AMI`.
func plain(text string) string { return machineCode.ReplaceAllString(text, "$1") }

// whenCreating corrects what a status means as the result of a creation. An image or a network that does not exist is not a VM that does
// not exist, and a VM that has not been initialized is one only if it is named.
func whenCreating(failure *Failure, hasVM bool) *Failure {
	if failure != nil && failure.Code == contract.Code_CODE_UNINITIALIZED && !hasVM {
		return failed(contract.Code_CODE_INTERNAL, "%s", failure.Message)
	}
	return notTheVM(failure)
}

// notTheVM corrects NotFound of a call that looks for no VM: a list of which something was not found is not an empty one.
func notTheVM(failure *Failure) *Failure {
	if failure != nil && failure.Code == contract.Code_CODE_NOT_FOUND {
		return failed(contract.Code_CODE_FAILED_PRECONDITION, "%s", failure.Message)
	}
	return failure
}

func (f *Failure) contract(lastKnownState string) *contract.Failure {
	if f == nil {
		return nil
	}
	return &contract.Failure{
		Code: f.Code, Message: f.Message, Terminal: f.Terminal, FencingToken: f.HighestToken, LastKnownState: lastKnownState,
	}
}
