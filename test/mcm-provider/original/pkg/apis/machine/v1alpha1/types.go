// Package v1alpha1 has the objects that a provider is given.
package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type Machine struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	metav1.TypeMeta   `json:",inline"`
	Spec              MachineSpec   `json:"spec,omitempty"`
	Status            MachineStatus `json:"status,omitempty"`
}

type MachineSpec struct {
	Class            ClassSpec        `json:"class,omitempty"`
	ProviderID       string           `json:"providerID,omitempty"`
	NodeTemplateSpec NodeTemplateSpec `json:"nodeTemplate,omitempty"`
}

type ClassSpec struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Name     string `json:"name,omitempty"`
}

type NodeTemplateSpec struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              corev1.NodeSpec `json:"spec,omitempty"`
}

type MachineStatus struct {
	LastKnownState string `json:"lastKnownState,omitempty"`
}

type MachineClass struct {
	metav1.TypeMeta      `json:",inline"`
	metav1.ObjectMeta    `json:"metadata,omitempty"`
	ProviderSpec         runtime.RawExtension    `json:"providerSpec"`
	SecretRef            *corev1.SecretReference `json:"secretRef,omitempty"`
	CredentialsSecretRef *corev1.SecretReference `json:"credentialsSecretRef,omitempty"`
	Provider             string                  `json:"provider,omitempty"`
}
