import { runOpenStackDriver } from './openstack-driver.ts';

await runOpenStackDriver(process.argv.slice(2));
