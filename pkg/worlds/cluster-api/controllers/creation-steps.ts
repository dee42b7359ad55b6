import { bootstrapStep } from './creation/bootstrap.ts';
import { certificates } from './creation/certificates.ts';
import { dataSecretStep } from './creation/data-secret.ts';
import { infrastructureStep } from './creation/infrastructure.ts';
import { nodeStep } from './creation/node.ts';
import type { ClusterAPIMachineStep, StepDeps } from './machine-pass.ts';

/** What is done in each pass, in this order: a step that fails keeps none of the others from running. */
export function creationSteps(deps: StepDeps): readonly ClusterAPIMachineStep[] {
  return [bootstrapStep(deps), infrastructureStep(deps), dataSecretStep(deps), nodeStep(deps), certificates];
}
