// librdkafka perf client: rkperf produce|consume brokers topic nparts msgsize count acks codec batchbytes lingerms
#include "librdkafka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <unistd.h>
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+t.tv_nsec*1e-9;}
static double cpu(){struct rusage r;getrusage(RUSAGE_SELF,&r);return r.ru_utime.tv_sec+r.ru_stime.tv_sec+1e-6*(r.ru_utime.tv_usec+r.ru_stime.tv_usec);}
static long nok=0,nerr=0;
static void dr(rd_kafka_t*rk,const rd_kafka_message_t*m,void*o){if(m->err){nerr++;if(nerr<3)fprintf(stderr,"dr err %s\n",rd_kafka_err2str(m->err));}else nok++;}
static void set(rd_kafka_conf_t*c,const char*k,const char*v){char e[512];if(rd_kafka_conf_set(c,k,v,e,sizeof e)){fprintf(stderr,"%s\n",e);exit(1);}}
int main(int ac,char**av){
  char e[512];
  int prod=!strcmp(av[1],"produce");const char*br=av[2],*topic=av[3];int np=atoi(av[4]);long sz=atol(av[5]),cnt=atol(av[6]);
  rd_kafka_conf_t*c=rd_kafka_conf_new();set(c,"bootstrap.servers",br);
  if(prod){set(c,"acks",av[7]);set(c,"compression.codec",av[8]);set(c,"batch.size",av[9]);set(c,"linger.ms",av[10]);
    set(c,"batch.num.messages","100000");set(c,"queue.buffering.max.messages","500000");set(c,"queue.buffering.max.kbytes","1000000");
    if(ac>11)set(c,"message.max.bytes",av[11]);
    rd_kafka_conf_set_dr_msg_cb(c,dr);
    rd_kafka_t*rk=rd_kafka_new(RD_KAFKA_PRODUCER,c,e,sizeof e);rd_kafka_topic_t*rt=rd_kafka_topic_new(rk,topic,NULL);
    const struct rd_kafka_metadata*md;rd_kafka_metadata(rk,0,rt,&md,10000);
    char*buf=malloc(sz*64+64);{unsigned s=1;const char*w[]={"order","\"id\":","customer","2024-05-01T","amount","{","},","true","price","9.99","sku-","warehouse"};
      long k=0;while(k<sz*64){s=s*1103515245+12345;const char*x=w[(s>>16)%12];int l=strlen(x);if(k+l>sz*64)l=sz*64-k;memcpy(buf+k,x,l);k+=l;if(k<sz*64&&(s>>28)&1){buf[k++]='0'+((s>>20)%10);}}}
    double t=now(),u=cpu();
    if(np>1){ int B=1000; rd_kafka_message_t*ms=calloc(B,sizeof *ms); long i=0; while(i<cnt){ int n=cnt-i<B?cnt-i:B; for(int j=0;j<n;j++){ms[j].payload=buf+((i+j)%64)*sz;ms[j].len=sz;ms[j].partition=(i/B)%np;ms[j].err=0;}
        int done=rd_kafka_produce_batch(rt,(i/B)%np,RD_KAFKA_MSG_F_COPY,ms,n);
        if(done<n){ for(int j=0;j<n;j++) if(ms[j].err){ while(rd_kafka_produce(rt,(i/B)%np,RD_KAFKA_MSG_F_COPY,ms[j].payload,sz,NULL,0,NULL)){rd_kafka_poll(rk,10);} } }
        i+=n; rd_kafka_poll(rk,0);} }
    else { int B=1000; rd_kafka_message_t*ms=calloc(B,sizeof *ms); long i=0; while(i<cnt){ int n=cnt-i<B?cnt-i:B; for(int j=0;j<n;j++){ms[j].payload=buf+((i+j)%64)*sz;ms[j].len=sz;ms[j].err=0;}
        int done=rd_kafka_produce_batch(rt,0,RD_KAFKA_MSG_F_COPY,ms,n);
        if(done<n){ for(int j=0;j<n;j++) if(ms[j].err){ while(rd_kafka_produce(rt,0,RD_KAFKA_MSG_F_COPY,ms[j].payload,sz,NULL,0,NULL)){rd_kafka_poll(rk,10);} } }
        i+=n; rd_kafka_poll(rk,0);} }
    rd_kafka_flush(rk,60000);
    double el=now()-t,cu=cpu()-u;printf("{\"s\":%.4f,\"MBps\":%.1f,\"kmsgps\":%.1f,\"clientcpu\":%.3f,\"ok\":%ld,\"err\":%ld}\n",el,cnt*(double)sz/el/1e6,cnt/el/1e3,cu,nok,nerr);fflush(stdout);_exit(0);
  } else {
    set(c,"group.id","g");set(c,"enable.auto.commit","false");set(c,"fetch.message.max.bytes","1048576");set(c,"fetch.wait.max.ms","100");set(c,"queued.max.messages.kbytes","65536");set(c,"queued.min.messages",getenv("QM")?getenv("QM"):"100000");
    set(c,"check.crcs","false");set(c,"fetch.queue.backoff.ms",getenv("QB")?getenv("QB"):"1"); if(ac>7)set(c,"fetch.message.max.bytes",av[7]);
    rd_kafka_t*rk=rd_kafka_new(RD_KAFKA_CONSUMER,c,e,sizeof e);
    rd_kafka_topic_t*rt=rd_kafka_topic_new(rk,topic,NULL);
    rd_kafka_queue_t*q=rd_kafka_queue_new(rk);
    const struct rd_kafka_metadata*md;rd_kafka_metadata(rk,0,rt,&md,10000);
    double t=now(),u=cpu();
    for(int i=0;i<np;i++) rd_kafka_consume_start_queue(rt,i,0,q);
    long n=0,by=0; rd_kafka_message_t**ms=malloc(10000*sizeof*ms); double end=t+60; double tf=0;
    while(n<cnt&&now()<end){ ssize_t k=rd_kafka_consume_batch_queue(q,100,ms,10000); for(int i=0;i<k;i++){ if(!ms[i]->err){n++;by+=ms[i]->len;} rd_kafka_message_destroy(ms[i]); } if(k>0&&!tf){tf=now();} }
    double el=now()-t,cu=cpu()-u;printf("{\"s\":%.4f,\"MBps\":%.1f,\"kmsgps\":%.1f,\"clientcpu\":%.3f,\"ok\":%ld,\"first\":%.4f}\n",el,by/el/1e6,n/el/1e3,cu,n,tf-t);fflush(stdout);_exit(0);
  }
}
