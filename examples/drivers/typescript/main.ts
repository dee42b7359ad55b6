import { serveDriver } from 'machinist-driver';

import { FolderDriver } from './driver.ts';

await serveDriver<{ cloud: string }>({
  name: 'folder-driver',
  description: 'A driver whose VMs are files.',
  flags: (command) => command.requiredOption('--cloud <folder>', 'the folder that is the provider'),
  open: ({ options, log }) => new FolderDriver(options.cloud, log),
});
