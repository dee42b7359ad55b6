import { describe, expect, test } from '@jest/globals';

import { running } from './fleet.ts';
import { History } from './history.ts';
import { machineClass, machineDeployment } from './manifests.ts';
import { onOneInstallation } from './scenario.ts';

/** The original's two programs, each under its own roles, and its CRDs, which prune what is only ours. */
const scenario = onOneInstallation({ layout: 'two', crds: 'original' });

describe('two programs under the CRDs of the original', () => {
  test(
    'keep, scale, roll, replace and remove machines as one process does',
    scenario(async (installation) => {
      const { kubectl } = installation;
      await installation.apply(machineClass('class-b'), machineDeployment('workers', 1));
      await running(installation, 1);
      await using history = await History.begin(installation.admin);

      await kubectl('scale', 'machinedeployment', 'workers', '--replicas=2');
      const two = await running(installation, 2);
      const change = { spec: { template: { spec: { class: { name: 'class-b' } } } } };
      await kubectl('patch', 'machinedeployment', 'workers', '--type=merge', '-p', JSON.stringify(change));
      const rolled = await running(installation, 2, 'class-b');
      const [first = ''] = rolled.map(({ metadata }) => metadata.name);
      await kubectl('delete', 'machine', first, '--timeout=30s');
      const replaced = await running(installation, 2);
      await history.caughtUp();

      expect(two).toHaveLength(2);
      expect(history.names).toHaveLength(5);
      expect(history.phasesOf(first)).toEqual(['', 'Pending', 'Running', 'Terminating', 'Gone']);
      expect(replaced.map(({ status }) => Object.keys(status ?? {}))).not.toContainEqual(
        expect.arrayContaining(['machineConditions']),
      );
    }),
  );
});
