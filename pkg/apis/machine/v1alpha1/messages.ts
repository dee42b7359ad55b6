/**
 * What is told about a field that cannot be obeyed: what is wrong, and the remedy. The CRDs' validation rules and
 * validation.ts use the same words.
 */
export const MESSAGES = {
  specMissing: 'spec is missing: set the desired state',
  selectorMissing: 'selector is missing: set selector.matchLabels to labels of spec.template.metadata.labels',
  selectorEmpty:
    'selector is empty and would select every Machine of the namespace: set selector.matchLabels to labels of spec.template.metadata.labels',
  selectorInvalid:
    'selector.matchExpressions must use operator In or NotIn with values, or Exists or DoesNotExist without values',
  selectorMismatch:
    'selector does not match the template: add all labels of the selector to spec.template.metadata.labels',
  selectorChanged:
    'selector cannot be changed, because machines that it no longer selects would remain without an owner; keep it, create a new object with the other selector, and delete this one when its machines are no longer needed',
  selectorNamesHash:
    'selector uses label machine-template-hash, which the controller sets to distinguish its MachineSets: remove the label from spec.selector and spec.template.metadata.labels',
  providerIDChanged:
    'providerID cannot be changed, because deleting the machine would delete another VM; to discard the VM, delete the Machine',
  classChanged:
    'class.name cannot be changed while a VM may exist, because only its own class can find and delete it; change the template of the MachineDeployment, or delete the Machine and create one with the other class',
  /** In the words of the API server, whose scale subresource refuses it; a rule in the CRDs would say it twice. */
  replicasNegative: 'should be a non-negative integer',
  templateLabelsMissing: 'template has no labels: set spec.template.metadata.labels to match the selector',
  classIncomplete: 'class does not refer to a MachineClass: set class.kind to MachineClass and class.name to its name',
  strategyType:
    'strategy.type must be RollingUpdate, Recreate or InPlaceUpdate; there is no default. RollingUpdate also requires strategy.rollingUpdate.maxSurge and maxUnavailable',
  rollingUpdateIncomplete:
    'strategy.rollingUpdate must set maxSurge and maxUnavailable when strategy.type is RollingUpdate, each as a number such as 1 or a percentage such as 25%',
  inPlaceUpdateIncomplete:
    'strategy.inPlaceUpdate must set maxSurge and maxUnavailable when strategy.type is InPlaceUpdate, each as a number such as 1 or a percentage such as 25%',
  orchestrationType:
    'strategy.inPlaceUpdate.orchestrationType must be Auto or Manual when strategy.type is InPlaceUpdate',
} as const;

/** For a duration that Go would not parse, or a negative one. */
export function durationMessage(field: string): string {
  return `${field} must be a non-negative duration, such as 30s, 10m or 1h30m`;
}

export function negativeMessage(field: string): string {
  return `${field} must be 0 or more`;
}

export function intOrPercentMessage(field: string): string {
  return `${field} must be a non-negative number such as 1, or a percentage such as 25%, as a string`;
}

/** For a percentage above 100 of what can only be all. */
export function moreThanAllMessage(field: string): string {
  return `${field} must be at most 100%`;
}

/** For a percentage whose share of `replicas` is more than a 32-bit integer holds. */
export function tooLargeMessage(field: string): string {
  return `${field} exceeds the range of a 32-bit number of machines: lower it`;
}

/** For a resource that the capacity of a MachineClass does not name. */
export function capacityMessage(resource: string): string {
  return `nodeTemplate.capacity must contain ${resource}: set it to the capacity of Nodes of this class, 0 if none`;
}

/** For an empty text in the node template of a MachineClass. */
export function emptyMessage(field: string): string {
  return `nodeTemplate.${field} is empty: set it to the ${field} of the Nodes of this class`;
}
