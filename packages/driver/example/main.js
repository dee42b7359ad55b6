import { serveDriver } from 'machinist-driver';

import { FolderDriver } from './driver.js';

await serveDriver({
  name: 'folder-driver',
  description: 'A driver whose VMs are files: the smallest one that keeps the contract.',
  open: ({ stateDirectory, log }) => new FolderDriver(stateDirectory, log),
});
