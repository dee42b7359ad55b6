// Package driver has the interface that every provider implements.
package driver

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
)

type Driver interface {
	CreateMachine(context.Context, *CreateMachineRequest) (*CreateMachineResponse, error)
	InitializeMachine(context.Context, *InitializeMachineRequest) (*InitializeMachineResponse, error)
	DeleteMachine(context.Context, *DeleteMachineRequest) (*DeleteMachineResponse, error)
	GetMachineStatus(context.Context, *GetMachineStatusRequest) (*GetMachineStatusResponse, error)
	ListMachines(context.Context, *ListMachinesRequest) (*ListMachinesResponse, error)
	GetVolumeIDs(context.Context, *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error)
}

type CreateMachineRequest struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

type CreateMachineResponse struct {
	ProviderID, NodeName, LastKnownState string
	Addresses                            []corev1.NodeAddress
}

type InitializeMachineRequest struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

type InitializeMachineResponse struct {
	ProviderID, NodeName string
	Addresses            []corev1.NodeAddress
}

type DeleteMachineRequest struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

type DeleteMachineResponse struct {
	LastKnownState string
}

type GetMachineStatusRequest struct {
	Machine      *v1alpha1.Machine
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

type GetMachineStatusResponse struct {
	ProviderID, NodeName string
	Addresses            []corev1.NodeAddress
}

type ListMachinesRequest struct {
	MachineClass *v1alpha1.MachineClass
	Secret       *corev1.Secret
}

type ListMachinesResponse struct {
	// Names of machines by the provider IDs of their VMs.
	MachineList map[string]string
}

type GetVolumeIDsRequest struct {
	PVSpecs []*corev1.PersistentVolumeSpec
}

type GetVolumeIDsResponse struct {
	VolumeIDs []string
}
