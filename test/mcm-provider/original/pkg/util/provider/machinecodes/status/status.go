// Package status has the errors of providers.
package status

import (
	"fmt"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
)

type Status struct {
	code    codes.Code
	message string
}

func (s *Status) Code() codes.Code { return s.code }

func (s *Status) Message() string { return s.message }

func (s *Status) Error() string {
	return fmt.Sprintf("machine codes error: code = [%s] message = [%s]", s.code, s.message)
}

func Error(code codes.Code, message string) error { return &Status{code, message} }
