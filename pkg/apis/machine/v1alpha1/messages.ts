/**
 * What is told about a field that cannot be obeyed: what is wrong, and the remedy. The CRDs' validation rules and
 * validation.ts use the same words.
 */
export const MESSAGES = {
  specMissing: 'spec is missing: describe there what should exist',
  selectorMissing: 'selector is missing: set selector.matchLabels to labels that spec.template.metadata.labels has',
  selectorEmpty:
    'selector is empty, which would select every Machine of the namespace: set selector.matchLabels to labels that spec.template.metadata.labels has',
  selectorInvalid:
    'selector.matchExpressions must use operator In or NotIn with values, or Exists or DoesNotExist without values',
  selectorMismatch:
    'selector does not select the Machines of the template: give spec.template.metadata.labels all labels that the selector asks for',
  selectorChanged:
    'selector cannot be changed: machines that it no longer selects would run on with nobody to manage them; keep it, make a new object with the other selector, and delete this one when its machines are no longer needed',
  selectorNamesHash:
    'selector names label machine-template-hash, by which the controller tells its MachineSets apart: remove the label from spec.selector and spec.template.metadata.labels',
  providerIDChanged:
    'providerID cannot be changed: the machine would be deleted with the VM of another; to give the VM up, delete the Machine',
  /** In the words of the API server, whose scale subresource refuses it; a rule in the CRDs would say it twice. */
  replicasNegative: 'should be a non-negative integer',
  templateLabelsMissing: 'template has no labels: set spec.template.metadata.labels to what the selector asks for',
  classIncomplete: 'class names no MachineClass: set class.kind to MachineClass and class.name to its name',
  strategyType:
    'strategy.type must be RollingUpdate, Recreate or InPlaceUpdate: set it, there is no default; RollingUpdate also needs strategy.rollingUpdate.maxSurge and maxUnavailable',
  rollingUpdateIncomplete:
    'strategy.rollingUpdate must set maxSurge and maxUnavailable when strategy.type is RollingUpdate, each as a number such as 1 or a percentage such as 25%',
  inPlaceUpdateIncomplete:
    'strategy.inPlaceUpdate must set maxSurge and maxUnavailable when strategy.type is InPlaceUpdate, each as a number such as 1 or a percentage such as 25%',
  orchestrationType:
    'strategy.inPlaceUpdate.orchestrationType must be Auto or Manual when strategy.type is InPlaceUpdate',
} as const;

/** For a duration that Go would not parse, or a negative one. */
export function durationMessage(field: string): string {
  return `${field} must be a duration that is not negative, such as 30s, 10m or 1h30m`;
}

/** For a number below 0. */
export function negativeMessage(field: string): string {
  return `${field} must be 0 or more`;
}

/** For what is neither a count nor a percentage. */
export function intOrPercentMessage(field: string): string {
  return `${field} must be a number from 0 on such as 1, or a percentage such as 25%, as a string`;
}

/** For a percentage above 100 of what can only be all. */
export function moreThanAllMessage(field: string): string {
  return `${field} cannot be more than 100%`;
}

/** For a percentage whose share of `replicas` is more than a 32-bit integer holds. */
export function tooLargeMessage(field: string): string {
  return `${field} is more machines than a 32-bit number counts: lower it`;
}

/** For a resource that the capacity of a MachineClass does not name. */
export function capacityMessage(resource: string): string {
  return `nodeTemplate.capacity must name ${resource}: set it to what a Node of this class has, 0 if none`;
}

/** For an empty text in the node template of a MachineClass. */
export function emptyMessage(field: string): string {
  return `nodeTemplate.${field} is empty: set it to the ${field} of the Nodes of this class`;
}
