// end-to-end latency: rklat brokers topic rate seconds
#include "librdkafka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <pthread.h>
#include <unistd.h>
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static int cmp(const void*a,const void*b){double x=*(double*)a,y=*(double*)b;return x<y?-1:x>y;}
static rd_kafka_conf_t*mk(const char*br,const char*kv[]){char e[512];rd_kafka_conf_t*c=rd_kafka_conf_new();rd_kafka_conf_set(c,"bootstrap.servers",br,e,512);for(int i=0;kv[i];i+=2)if(rd_kafka_conf_set(c,kv[i],kv[i+1],e,512)){fprintf(stderr,"%s\n",e);exit(1);}return c;}
static int rate,secs;static double*lat;static volatile long n=0;static rd_kafka_topic_t*ct;
static void*cons(void*a){while(1){rd_kafka_message_t*m=rd_kafka_consume(ct,0,1000);if(!m)continue;if(!m->err&&m->len>=16){double t;memcpy(&t,m->payload,8);lat[n++]=now()-t;}rd_kafka_message_destroy(m);}}
int main(int ac,char**av){char e[512];rate=atoi(av[3]);secs=atoi(av[4]);lat=malloc(8*(rate*secs+1000));
 const char*pk[]={"acks",ac>5?av[5]:"1","linger.ms","0",0};const char*ck[]={"group.id","g","fetch.wait.max.ms","500","enable.auto.commit","false",0};
 rd_kafka_t*p=rd_kafka_new(RD_KAFKA_PRODUCER,mk(av[1],pk),e,512),*c=rd_kafka_new(RD_KAFKA_CONSUMER,mk(av[1],ck),e,512);
 rd_kafka_topic_t*pt=rd_kafka_topic_new(p,av[2],0);ct=rd_kafka_topic_new(c,av[2],0);const struct rd_kafka_metadata*md;rd_kafka_metadata(p,0,pt,&md,5000);
 rd_kafka_consume_start(ct,0,RD_KAFKA_OFFSET_BEGINNING);pthread_t th;pthread_create(&th,0,cons,0);sleep(1);
 char b[100]={0};double t0=now();long N=(long)rate*secs;
 for(long i=0;i<N;i++){double tgt=t0+(double)i/rate;double d=tgt-now();if(d>0){struct timespec ts={0,(long)(d*1e9)};nanosleep(&ts,0);}double t=now();memcpy(b,&t,8);rd_kafka_produce(pt,0,RD_KAFKA_MSG_F_COPY,b,100,0,0,0);rd_kafka_poll(p,0);}
 rd_kafka_flush(p,5000);usleep(700000);long m=n;qsort(lat,m,8,cmp);printf("{\"n\":%ld,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}\n",m,lat[m/2]*1e3,lat[(long)(m*.9)]*1e3,lat[(long)(m*.99)]*1e3,lat[(long)(m*.999)]*1e3,lat[m-1]*1e3);fflush(stdout);_exit(0);}
