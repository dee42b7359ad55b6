import { runClusterAPIDriver } from './cluster-api-driver.ts';

await runClusterAPIDriver(process.argv.slice(2));
