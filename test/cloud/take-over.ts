import { expect } from '@jest/globals';

import type { Api } from '../../hack/control-plane/api.ts';
import type { IronCoreMachinePool } from '../../pkg/worlds/ironcore/api/machine-pool.ts';
import { TAKE_OVER_CLAIMS_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import { eventually } from '../expect/eventually.ts';

/** Gives a MachinePool of IronCore what another cluster claims of it, as its condition says, until nothing is claimed any more. */
export async function takeOver(api: Api, pool: string): Promise<void> {
  const path = `/apis/compute.ironcore.dev/v1alpha1/machinepools/${pool}`;
  let isGiven = false;
  await eventually(
    async () => {
      const { status } = await api.send<IronCoreMachinePool>('GET', path);
      const { message = '' } = status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
      // What is claimed meanwhile is shown with the next heartbeat.
      const [, claims] = /take-over-claims=(\S+)/.exec(message) ?? [];
      if (claims !== undefined) {
        isGiven = true;
        await api.send('PATCH', path, { metadata: { annotations: { [TAKE_OVER_CLAIMS_ANNOTATION]: claims } } });
      }
      expect([isGiven, status?.state]).toEqual([true, 'Ready']);
    },
    { timeoutMs: 120_000 },
  );
}
