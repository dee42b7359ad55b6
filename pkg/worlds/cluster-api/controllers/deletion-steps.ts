import { careStep } from './deletion/node-care.ts';
import { detachStep } from './deletion/detach-volumes.ts';
import { drainStep } from './deletion/drain.ts';
import { hooks, PRE_DRAIN, PRE_TERMINATE } from './deletion/hooks.ts';
import { located } from './deletion/located.ts';
import { nodeRemoval } from './deletion/node-removal.ts';
import { ofNode } from './deletion/of-node.ts';
import { decided } from './deletion/reachable.ts';
import { release } from './deletion/release.ts';
import { removal } from './deletion/removal.ts';
import { OF_BOOTSTRAP, OF_INFRASTRUCTURE } from './deletion/waits.ts';
import type { ClusterAPIMachineStep, StepDeps } from './machine-pass.ts';

/**
 * What is done for a Machine that is being deleted, in this order; each waits for the one before. The Node is let alone where there is
 * none, and where its API server goes along.
 *
 *   hooks ─▶ drain ─▶ volumes detached ─▶ hooks ─▶ infrastructure gone ─▶ bootstrap gone ─▶ Node gone ─▶ finalizer
 */
export function deletionSteps(deps: StepDeps): readonly ClusterAPIMachineStep[] {
  return [
    located,
    careStep(deps),
    ofNode(hooks(deps, PRE_DRAIN)),
    ofNode(decided),
    ofNode(drainStep(deps)),
    ofNode(detachStep(deps)),
    hooks(deps, PRE_TERMINATE),
    removal(deps, 'infrastructure', OF_INFRASTRUCTURE, (pass) => [
      pass.infrastructure,
      pass.machine.spec.infrastructureRef,
    ]),
    removal(deps, 'bootstrap', OF_BOOTSTRAP, (pass) => [pass.bootstrap, pass.machine.spec.bootstrap?.configRef]),
    ofNode(nodeRemoval(deps)),
    release,
  ];
}
