import { Status } from 'nice-grpc';

import { NoAnswer } from '../conversation.ts';
import type { Rules } from '../rule.ts';
import type { Scene } from '../scene.ts';
import { codeName, UnexpectedAnswer, Violation } from '../violation.ts';

/** What a driver says of itself. */
export const SERVICE: Rules = {
  health: {
    sentence: 'What a driver serves, together with grpc.health.v1.Health.',
    async run({ talk, signal }) {
      if (!(await talk.isServing(signal)))
        throw new Violation('grpc.health.v1.Health/Check does not return SERVING', 'SERVING');
    },
  },
  'named-methods': {
    sentence: 'Names of the optional methods that the driver has: "InitializeMachine", "ListMachines", "GetVolumeIDs".',
    async run(scene) {
      for (const method of scene.capabilities.methods) {
        if (await isMissing(scene, method))
          throw new Violation(
            `GetCapabilities names ${method}, which is UNIMPLEMENTED`,
            'only methods that the driver implements',
          );
      }
    },
  },
  'foreign-volume': {
    sentence: "In the order asked for; a volume that is not the provider's is left out.",
    requires: ['GetVolumeIDs'],
    async run({ talk, cluster, signal }) {
      const { failure, volumeIds } = await talk.volumeIDs(cluster, [{ hostPath: { path: '/tmp' } }], { signal });
      if (failure !== undefined) throw new UnexpectedAnswer('GetVolumeIDs of a hostPath', failure, 'an empty list');
      if (volumeIds.length > 0)
        throw new Violation(`GetVolumeIDs of a hostPath returned ${volumeIds.join(', ')}`, 'an empty list');
    },
  },
};

async function isMissing(
  scene: Scene,
  method: 'InitializeMachine' | 'ListMachines' | 'GetVolumeIDs',
): Promise<boolean> {
  const { talk, cluster, signal } = scene;
  const subject = scene.machine('a');
  const ask = {
    InitializeMachine: () => talk.initialize(subject, { signal }),
    ListMachines: () => talk.page(subject, { signal }, { pageSize: 0, pageToken: '' }),
    GetVolumeIDs: () => talk.volumeIDs(cluster, [], { signal }),
  }[method];
  try {
    const { failure } = await ask();
    return failure !== undefined && codeName(failure) === 'Unimplemented';
  } catch (err) {
    // What else may end it, other rules are about.
    if (err instanceof NoAnswer) return err.status === Status.UNIMPLEMENTED;
    throw err;
  }
}
